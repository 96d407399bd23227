//! A route of the HTTP server: the request, its answer, and their schemas for `GET /openapi.json`.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::answers::HttpResponse;
use crate::console::Console;

/// A request of the server, with everything that its description needs.
#[derive(Debug)]
pub(super) struct ServiceRoute {
    pub(super) method: RouteMethod,
    /// The path. If it ends in [`ID`], that stands for a part of the request's path.
    pub(super) path: &'static str,
    /// The name for programs that are generated from the description.
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// The body, if the request may have one.
    pub(super) body: Option<RouteBody>,
    /// Statuses of answers that are no errors.
    pub(super) successes: &'static [u16],
    /// The contents of such answers.
    pub(super) contents: &'static [AnswerContent],
    /// Statuses of this route's errors, beside those of all routes.
    pub(super) errors: &'static [u16],
    pub(super) answer: RouteAnswer,
}

/// The end of a path that takes a number.
pub(super) const ID: &str = "{id}";

impl ServiceRoute {
    /// Returns the part of a path that [`ID`] stands for, and nothing for a path without it. `None` if the path is
    /// another.
    pub(super) fn id_in<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.path.strip_suffix(ID) {
            Some(before) => path.strip_prefix(before).filter(|id| !id.is_empty() && !id.contains('/')),
            None => (path == self.path).then_some(""),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteMethod {
    Get,
    Post,
    Delete,
}

impl RouteMethod {
    pub(super) const fn name(self) -> &'static str {
        match self {
            RouteMethod::Get => "GET",
            RouteMethod::Post => "POST",
            RouteMethod::Delete => "DELETE",
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
    /// The request for a dump.
    Dump,
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
    /// The part of the path that [`ID`] stands for, or nothing.
    pub(super) id: &'a str,
    pub(super) console: &'a Console,
    /// The nonce that marks the page's own script and style.
    pub(super) nonce: &'a str,
}

/// The reference to the schema of a type.
pub(super) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
