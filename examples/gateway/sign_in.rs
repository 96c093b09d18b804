//! The middleware that identifies callers, for the routes of the app and for MCP alike.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{
        StatusCode,
        header::{AUTHORIZATION, WWW_AUTHENTICATE},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use mcp_runtime::{Principal, http::IntoPrincipal};
use sha2::{Digest, Sha256};

use super::Companies;

/// A user of one of the companies.
#[derive(Clone)]
pub(crate) struct User {
    name: &'static str,
    company: &'static str,
    scopes: &'static [&'static str],
}

/// The principal of the user for MCP: names are unique within a company, so the company is the issuer.
impl IntoPrincipal for User {
    fn into_principal(self) -> Option<Principal> {
        let issuer = format!("https://shop.example.com/{}", self.company);
        Some(Principal::new(issuer, self.name).with_scopes(self.scopes.iter().copied()))
    }
}

/// The users, by the SHA-256 of their token: reading this table reveals no token, and the time of a lookup reveals
/// nothing about the tokens in it.
#[derive(Clone)]
pub(crate) struct Users(Arc<HashMap<[u8; 32], User>>);

impl Default for Users {
    fn default() -> Self {
        let reader = &["orders:read"][..];
        let shipper = &["orders:read", "orders:write"][..];
        let users = [
            ("ada-of-acme", User { name: "ada", company: "acme", scopes: shipper }),
            ("bob-of-acme", User { name: "bob", company: "acme", scopes: reader }),
            ("ada-of-zenith", User { name: "ada", company: "zenith", scopes: shipper }),
        ];
        Self(Arc::new(users.into_iter().map(|(token, user)| (digest(token), user)).collect()))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl Users {
    fn of(&self, request: &Request) -> Option<User> {
        let header = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
        self.0.get(&digest(header.strip_prefix("Bearer ")?)).cloned()
    }
}

/// Puts the user and the user's company into a request, or rejects it.
pub(crate) async fn sign_in(
    State((users, companies)): State<(Users, Companies)>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(user) = users.of(&request) else {
        // MCP clients look for this header, which says how to sign in
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response();
    };
    if let Some(company) = companies.of(user.company) {
        request.extensions_mut().insert(company);
    }
    request.extensions_mut().insert(user);
    next.run(request).await
}
