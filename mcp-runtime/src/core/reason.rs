//! Why a request was refused, or why it failed: one list for the audit log, metrics, spans and log messages, so that a
//! line of one can be found in the others. The page about telemetry says what each means; a test compares the two.
//!
//! The name beside a reason is the HTTP status of a request that is refused for it: those that have one are a [`Refusal`]
//! too, from which the response takes it. The comment of such a reason names the file that refuses and a name in it, and a test
//! looks for both. The status of a reply to a request whose method was examined is `Status` of `core/dispatch/response.rs`: of
//! a failure it is `200` in legacy revisions, except `403` and `503`.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $reason:ident = $text:literal $(, $status:ident)?;)*) => {
        /// Why a request was refused, or why it failed, by a name for operators.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Reason {
            $($(#[doc = $doc])* $reason,)*
        }

        impl Reason {
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$reason,)*];

            /// The name that operators read.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$reason => $text,)*
                }
            }

            #[cfg(test)]
            pub(super) const fn comment(self) -> &'static str {
                match self {
                    $(Self::$reason => concat!($($doc),*),)*
                }
            }
        }

        /// Why an HTTP request was refused: a reason that has a status. Most are found before the method is examined; not the
        /// scopes of an item, nor an event that needs a caller.
        #[cfg(feature = "http")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct Refusal {
            reason: Reason,
            status: http::StatusCode,
        }

        #[cfg(feature = "http")]
        #[allow(non_upper_case_globals, reason = "they are named as the reasons are")]
        impl Refusal {
            $($(pub(crate) const $reason: Self =
                Self { reason: Reason::$reason, status: http::StatusCode::$status };)?)*

            #[cfg(test)]
            pub(super) const ALL: &'static [Self] =
                &[$($(Self { reason: Reason::$reason, status: http::StatusCode::$status },)?)*];

            pub(crate) const fn reason(self) -> Reason {
                self.reason
            }

            /// The HTTP status of the response.
            pub(crate) const fn status(self) -> http::StatusCode {
                self.status
            }
        }
    };
}

// without HTTP or authentication, some have no use
mod list {
    reasons! {
        // the request does not get to its item
        /// `-32602`: `core/dispatch/response.rs`, `unknown_item`
        Unknown = "unknown";
        Hidden = "hidden";
        /// The item's, if the caller can acquire what it lacks (otherwise the item is unknown): `core/connection/access.rs`,
        /// `MissingScopes`. The server's: `auth/callers/oauth.rs`, `check_principal`. A function of the program:
        /// `auth/callers/verifier.rs`, `insufficient_scope`
        Scopes = "scopes", FORBIDDEN;
        /// `400` since 2026-07-28: `core/dispatch/input_required.rs`, `missing_features`
        Capability = "capability";
        /// `core/dispatch/request.rs`, `retry`
        State = "state";
        /// The server's: `transport/http/endpoint.rs`, `too_many_requests`; that of an item fails the call:
        /// `core/admission/call_limits.rs`, `LimitReached`
        RateLimited = "rate_limited", TOO_MANY_REQUESTS;
        /// That of an item, whose call fails: `core/admission/call_limits.rs`, `CallerConcurrency`
        Concurrency = "concurrency";
        /// `transport/http/endpoint.rs`, `busy` and `make_state`, and `too_many_streams` and `sessions_unavailable` of
        /// `transport/http/http_error.rs`, `unavailable`; of a method: `core/dispatch/response.rs`, `unavailable`
        Busy = "busy", SERVICE_UNAVAILABLE;
        /// `transport/http/accept.rs`, `stopping`
        Stopping = "stopping", SERVICE_UNAVAILABLE;
        // over HTTP, before its method is looked at
        /// The callers of `transport/http/http_error.rs`, `bad_request`; a message that is not JSON-RPC:
        /// `transport/http/service.rs`, `error_response`
        Malformed = "malformed", BAD_REQUEST;
        /// `transport/http/endpoint.rs`, `check_sender`
        Forwarded = "forwarded", BAD_REQUEST;
        /// `Host` is not one of `allowed_hosts`, or, if there are none, not a loopback name: `transport/http/guard.rs`,
        /// `allows_host`
        Host = "host", FORBIDDEN;
        /// `Origin` is not one of `allowed_origins`, or, if there are none, not a loopback page that asks a loopback host:
        /// `transport/http/guard.rs`, `allows_origin`
        Origin = "origin", FORBIDDEN;
        /// `transport/http/service.rs`, `method_not_allowed`
        NotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED;
        /// `transport/http/request_connection.rs`, `check_acceptable`; of a stream: `transport/http/service.rs`, `not_acceptable`
        NotAcceptable = "not_acceptable", NOT_ACCEPTABLE;
        /// `transport/http/service.rs`, `unsupported_media_type`
        MediaType = "media_type", UNSUPPORTED_MEDIA_TYPE;
        /// `transport/http/request_body.rs`, `body_too_large`
        BodySize = "body_size", PAYLOAD_TOO_LARGE;
        /// `transport/http/request_body.rs`, `body_timeout`
        BodyTimeout = "body_timeout", REQUEST_TIMEOUT;
        /// `transport/http/response_body.rs`, `too_many_unread_bytes`
        Unread = "unread", SERVICE_UNAVAILABLE;
        /// `transport/http/legacy/sessions.rs`, `unknown_session`
        Session = "session", NOT_FOUND;
        /// `transport/http/legacy/http_sse.rs`, `unknown_stream`
        Stream = "stream", NOT_FOUND;
        // callers that are not authenticated
        /// `auth/callers/authenticator.rs`, `MissingToken`
        TokenMissing = "token_missing", UNAUTHORIZED;
        /// `auth/callers/authenticator.rs`, `MissingToken`
        TokenMisplaced = "token_misplaced", BAD_REQUEST;
        /// `auth/callers/compact_jwt.rs`, `TokenMalformed`
        TokenMalformed = "token_malformed", UNAUTHORIZED;
        /// `auth/callers/compact_jwt.rs`, `TokenAlgorithm`
        TokenAlgorithm = "token_algorithm", UNAUTHORIZED;
        /// `auth/callers/oauth.rs`, `TokenType`
        TokenType = "token_type", UNAUTHORIZED;
        /// `auth/callers/jwks.rs`, `TokenUnknownKey`
        TokenUnknownKey = "token_unknown_key", UNAUTHORIZED;
        /// `auth/callers/compact_jwt.rs`, `TokenSignature`
        TokenSignature = "token_signature", UNAUTHORIZED;
        /// `auth/callers/token_claims.rs`, `TokenIssuer`
        TokenIssuer = "token_issuer", UNAUTHORIZED;
        /// `auth/callers/token_claims.rs`, `TokenAudience`
        TokenAudience = "token_audience", UNAUTHORIZED;
        /// `auth/callers/token_claims.rs`, `TokenExpired`
        TokenExpired = "token_expired", UNAUTHORIZED;
        /// `auth/callers/token_claims.rs`, `TokenNotYetValid`
        TokenNotYetValid = "token_not_yet_valid", UNAUTHORIZED;
        /// `auth/callers/token_claims.rs`, `TokenClaims`
        TokenClaims = "token_claims", UNAUTHORIZED;
        /// `auth/callers/oauth.rs`, `TokenBinding`
        TokenBinding = "token_binding", UNAUTHORIZED;
        /// `auth/callers/dpop.rs`, `InvalidProof`
        TokenProof = "token_proof", UNAUTHORIZED;
        /// `auth/callers/introspection.rs`, `TokenInactive`
        TokenInactive = "token_inactive", UNAUTHORIZED;
        /// `auth/callers/api_keys.rs`, `TokenUnknown`
        TokenUnknown = "token_unknown", UNAUTHORIZED;
        /// A function of the program: `auth/callers/verifier.rs`, `invalid_token`
        TokenInvalid = "token_invalid", UNAUTHORIZED;
        /// `auth/callers/authenticator.rs`, `refuse_guess`
        TokenGuesses = "token_guesses", TOO_MANY_REQUESTS;
        /// A function of the program, `auth/callers/verifier.rs`, `forbidden`, and `auth/callers/oauth.rs`, `check_principal`;
        /// or an event that needs a caller, `capability/events/error.rs`, `needs_caller`
        Forbidden = "forbidden", FORBIDDEN;
        /// `auth/callers/verifier.rs`, `unavailable`
        AuthUnavailable = "auth_unavailable", SERVICE_UNAVAILABLE;
        // the call fails
        InvalidArguments = "invalid_arguments";
        NotFound = "not_found";
        Timeout = "timeout";
        Panic = "panic";
        Layer = "layer";
        OutputSchema = "output_schema";
        ResultSize = "result_size";
        Private = "private";
        Cancelled = "cancelled";
        Expired = "expired";
    }
}

pub(crate) use list::Reason;
#[cfg(feature = "http")]
pub(crate) use list::Refusal;

impl Reason {
    /// Whether the request was refused: no function ran for it.
    pub(crate) const fn is_refusal(self) -> bool {
        !matches!(
            self,
            Self::InvalidArguments
                | Self::NotFound
                | Self::Timeout
                | Self::Panic
                | Self::Layer
                | Self::OutputSchema
                | Self::ResultSize
                | Self::Private
                | Self::Cancelled
                | Self::Expired
        )
    }

    /// Whether the item's own function decided that the call fails, rather than what is around it.
    pub(crate) const fn is_of_function(self) -> bool {
        matches!(self, Self::Private | Self::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_telemetry_says_what_each_reason_means() {
        let page = include_str!("../../docs/telemetry.md");
        let listed = page.split("## Reasons").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
        let named: Vec<&str> = listed
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|line| line.split(" |").next())
            .flat_map(|names| names.split(", "))
            .map(|name| name.trim_matches('`'))
            .collect();
        let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(named, known, "in the order of the list");
    }

    #[cfg(feature = "http")]
    #[test]
    fn the_comment_of_a_reason_with_a_status_names_the_file_that_refuses_and_a_name_in_it() {
        for reason in Reason::ALL {
            let comment = reason.comment();
            let quoted: Vec<&str> = comment.split('`').skip(1).step_by(2).collect();
            let mut files = 0;
            for pair in quoted.windows(2) {
                let [file, name] = pair else { continue };
                if !file.ends_with(".rs") {
                    continue;
                }
                let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
                let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
                assert!(text.contains(name), "{reason:?}: `{name}` is not in {file}");
                files += 1;
            }
            let has_status = Refusal::ALL.iter().any(|refusal| refusal.reason() == *reason);
            assert!(files > 0 || !has_status, "{reason:?} names no file");
        }
    }
}
