// A picture of the browser as a PNG with a palette, which has a third of the bytes.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const COLORS = 256;

function* chunks(png) {
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    yield [png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + length)];
    at += 12 + length;
  }
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

// The channels of each pixel, with what was subtracted added again.
function unfilter(data, width, height, size) {
  const stride = width * size;
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const left = x >= size ? out[y * stride + x - size] : 0;
      const up = y > 0 ? out[(y - 1) * stride + x] : 0;
      const corner = x >= size && y > 0 ? out[(y - 1) * stride + x - size] : 0;
      const estimate = left + up - corner;
      const [a, b, c] = [left, up, corner].map((value) => Math.abs(estimate - value));
      const nearest = a <= b && a <= c ? left : b <= c ? up : corner;
      const added = [0, left, up, (left + up) >> 1, nearest][filter];
      out[y * stride + x] = (data[y * (stride + 1) + 1 + x] + added) & 255;
    }
  }
  return out;
}

export function withPalette(png) {
  const all = [...chunks(png)];
  const header = all.find(([name]) => name === "IHDR")[1];
  const [width, height, depth, type] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  if (depth !== 8 || ![2, 6].includes(type)) return png;
  const size = type === 2 ? 3 : 4;
  const pixels = unfilter(inflateSync(Buffer.concat(all.filter(([name]) => name === "IDAT").map(([, data]) => data))), width, height, size);
  // colors lose bits until there are few enough
  for (let bits = 0; bits < 8; bits += 1) {
    const palette = new Map();
    const round = (value) => Math.min(255, ((value + ((1 << bits) >> 1)) >> bits) << bits);
    const rows = Buffer.alloc((width + 1) * height);
    for (let at = 0; at < width * height && palette.size <= COLORS; at += 1) {
      const [r, g, b] = [0, 1, 2].map((channel) => round(pixels[at * size + channel]));
      const color = (r << 16) | (g << 8) | b;
      if (!palette.has(color)) palette.set(color, palette.size);
      rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = palette.get(color);
    }
    if (palette.size > COLORS) continue;
    const plte = Buffer.from([...palette.keys()].flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
    const ihdr = Buffer.from(header);
    ihdr[9] = 3;
    return Buffer.concat([SIGNATURE, chunk("IHDR", ihdr), chunk("PLTE", plte), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
  }
  return png;
}
