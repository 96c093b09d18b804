//! Why a request was refused, or why it failed: one list for the audit log, metrics, spans and log messages, so that a
//! line of one can be found in the others. The page about telemetry says what each means; a test compares the two.

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $text:literal,)*) => {
        /// Why a request was refused, or why it failed, by a name for operators.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Reason {
            $($(#[$doc])* $reason,)*
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
        }
    };
}

// without HTTP or authentication, some have no use
#[cfg_attr(not(all(feature = "http", feature = "auth")), allow(dead_code))]
mod list {
    reasons! {
        // the request does not get to its item
        Unknown = "unknown",
        Hidden = "hidden",
        Scopes = "scopes",
        Capability = "capability",
        State = "state",
        RateLimited = "rate_limited",
        Concurrency = "concurrency",
        Busy = "busy",
        Stopping = "stopping",
        // over HTTP, before its method is looked at
        Malformed = "malformed",
        Forwarded = "forwarded",
        Host = "host",
        Origin = "origin",
        NotAllowed = "method_not_allowed",
        NotAcceptable = "not_acceptable",
        MediaType = "media_type",
        BodySize = "body_size",
        BodyTimeout = "body_timeout",
        Unread = "unread",
        Session = "session",
        Stream = "stream",
        // callers that are not authenticated
        TokenMissing = "token_missing",
        TokenMisplaced = "token_misplaced",
        TokenMalformed = "token_malformed",
        TokenAlgorithm = "token_algorithm",
        TokenType = "token_type",
        TokenUnknownKey = "token_unknown_key",
        TokenSignature = "token_signature",
        TokenIssuer = "token_issuer",
        TokenAudience = "token_audience",
        TokenExpired = "token_expired",
        TokenNotYetValid = "token_not_yet_valid",
        TokenClaims = "token_claims",
        TokenBinding = "token_binding",
        TokenProof = "token_proof",
        TokenInactive = "token_inactive",
        TokenUnknown = "token_unknown",
        TokenInvalid = "token_invalid",
        TokenGuesses = "token_guesses",
        Forbidden = "forbidden",
        AuthUnavailable = "auth_unavailable",
        // the call fails
        InvalidArguments = "invalid_arguments",
        NotFound = "not_found",
        Timeout = "timeout",
        Panic = "panic",
        Layer = "layer",
        OutputSchema = "output_schema",
        ResultSize = "result_size",
        Private = "private",
        Cancelled = "cancelled",
        Expired = "expired",
    }
}

pub(crate) use list::Reason;

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
}
