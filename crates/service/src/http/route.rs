//! A route of the HTTP server: the request, its answer, and their schemas for `GET /openapi.json`.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::answers::HttpResponse;
use crate::console::Console;

/// A request of the server, with everything that its description needs.
#[derive(Debug)]
pub(super) struct ServiceRoute {
    pub(super) method: RouteMethod,
    pub(super) path: &'static str,
    /// The name for programs that are generated from the description.
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// The body, if the request may have one.
    pub(super) body: Option<RouteBody>,
    /// The contents of an answer with status 200.
    pub(super) contents: &'static [AnswerContent],
    /// Statuses of this route's errors, beside those of all routes.
    pub(super) errors: &'static [u16],
    pub(super) answer: RouteAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteMethod {
    Get,
    Post,
}

impl RouteMethod {
    pub(super) const fn name(self) -> &'static str {
        match self {
            RouteMethod::Get => "GET",
            RouteMethod::Post => "POST",
        }
    }
}

/// The JSON body of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum RouteBody {
    /// Options of recordings.
    Options,
    /// Options of recordings, and metadata of the user.
    Arm,
}

/// A content of answers.
#[derive(Debug)]
pub(super) struct AnswerContent {
    pub(super) media: &'static str,
    pub(super) schema: ContentSchema,
}

/// The schema of a content.
#[derive(Debug)]
pub(super) enum ContentSchema {
    /// A value of a type.
    Json(SchemaMaker),
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// Events, each with its name and the schema of its data.
    Events(&'static [EventSchema]),
}

/// Adds the schema of a type to a generator.
pub(super) type SchemaMaker = fn(&mut SchemaGenerator) -> Schema;

/// The schema of an event's data.
#[derive(Debug)]
pub(super) struct EventSchema {
    pub(super) name: &'static str,
    pub(super) data: SchemaMaker,
}

/// The way in which a route answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum RouteAnswer {
    /// By a function, as a whole.
    Whole(fn(&RoutedRequest<'_>) -> HttpResponse),
    /// By events, until the client leaves.
    Events,
}

/// A request for a route.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoutedRequest<'a> {
    pub(super) body: &'a [u8],
    pub(super) console: &'a Console,
    /// The nonce that marks the page's own script and style.
    pub(super) nonce: &'a str,
}

/// The reference to the schema of a type.
pub(super) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
