// The browser of a user who is signed in.
//
//   node browse.mjs URL      follows every redirect, also that to the client
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';

/** Follows redirects, with cookies, until one leaves for a URL that `leaves` accepts, which is returned. */
export async function browse(url, leaves) {
  const cookies = new Map();
  while (!leaves(url)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const header of response.headers.getSetCookie()) {
      const [name, value] = header.split(';')[0].split(/=(.*)/s);
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (!location) return new URL(url);
    url = new URL(location, url).href;
  }
  return new URL(url);
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) await browse(argv[2], () => false);
