//! One request to the server with an access token: sent again with another one while the server refuses it and the client
//! can get a better one, a limited number of times.

use std::sync::Arc;

use http::StatusCode;

use super::{
    access_token::AccessToken,
    authorizer::{Authorizer, NewToken},
    proof_key::ProofKey,
};
use crate::{
    client::{
        Error,
        link::{bearer_challenge::Challenge, http_link::Login},
    },
    fetch::{HttpRequest, HttpResponse},
};

/// How often one request is sent again with another token or proof.
const MAX_REPETITIONS: u32 = 4;

/// A request, and what has been tried for it.
pub(in crate::client) struct AuthorizedRequest<'a> {
    authorizer: &'a Arc<Authorizer>,
    request: HttpRequest,
    login: Login<'a>,
    /// How many logins there were before.
    logins: u64,
    repetitions: u32,
    /// Whether the user has logged in for more scopes.
    has_more_scopes: bool,
    /// The token that was sent last, and the nonce of its proof.
    token: Option<AccessToken>,
    nonce: Option<String>,
}

impl<'a> AuthorizedRequest<'a> {
    pub(in crate::client) fn new(
        authorizer: &'a Arc<Authorizer>,
        request: HttpRequest,
        login: Login<'a>,
    ) -> Self {
        let logins = authorizer.logins();
        let (repetitions, has_more_scopes, token, nonce) = (0, false, None, None);
        Self { authorizer, request, login, logins, repetitions, has_more_scopes, token, nonce }
    }

    /// The request with a token, if the client has one.
    ///
    /// # Errors
    /// A token that is about to end cannot be renewed.
    pub(in crate::client) async fn next(&mut self) -> Result<HttpRequest, Error> {
        let mut next = self.request.clone();
        let token = self.authorizer.user().pause(self.login.operation(), self.authorizer.token()).await;
        self.token = token.map_err(Error::authorization)?;
        self.nonce = self.proof_key().and_then(|key| key.nonce(&self.request.url));
        if let Some(token) = &self.token {
            token.authorize(&mut next)?;
        }
        Ok(next)
    }

    fn proof_key(&self) -> Option<&ProofKey> {
        self.token.as_ref()?.proof_key()
    }

    /// Whether the request is to be sent again after this response.
    ///
    /// # Errors
    /// The server asks for another token, which the client cannot get.
    pub(in crate::client) async fn is_repeated_after(
        &mut self,
        response: &HttpResponse,
    ) -> Result<bool, Error> {
        let has_new_nonce = self
            .proof_key()
            .is_some_and(|key| key.keep_nonce(&self.request.url, response.headers(), self.nonce.as_deref()));
        let challenge = Challenge::of(response.headers());
        let needs_scopes = challenge.needs_scopes();
        let is_challenged = match response.status() {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN => needs_scopes && !self.has_more_scopes,
            _ => false,
        };
        let lacks_nonce = has_new_nonce && challenge.error.as_deref() == Some("use_dpop_nonce");
        if !(is_challenged || lacks_nonce) || self.repetitions == MAX_REPETITIONS {
            return Ok(false);
        }
        self.repetitions += 1;
        if lacks_nonce {
            return Ok(true);
        }
        let refused = self.token.as_ref().map(AccessToken::text);
        let obtained =
            self.authorizer.challenged(refused, self.logins, &challenge, response.peer(), self.login);
        let obtained = self.authorizer.user().pause(self.login.operation(), obtained).await;
        let obtained = obtained.map_err(Error::authorization)?;
        self.has_more_scopes |= obtained == NewToken::Authorized && needs_scopes;
        Ok(obtained != NewToken::Useless)
    }
}
