//! The description of the HTTP server in OpenAPI 3.1, made from the table of routes and from the types of bodies and
//! answers. OpenAPI 3.1 takes schemas of JSON Schema 2020-12 as they are.

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    answers::{AnswerStatus, ErrorAnswer, JSON, STATUSES},
    route::{AnswerContent, ContentSchema, ID, RouteBody, ServiceRoute, schema_of},
};
use crate::{dump::DumpRequest, recording::options::RecordOptions};

/// Errors that any request may get.
const COMMON_ERRORS: [u16; 8] = [400, 401, 403, 408, 413, 431, 501, 505];
const ABOUT: &str =
    "The recorder as a service. If the service has a file of tokens, each request needs one; otherwise none.";

/// The description of these routes, as a text.
pub(super) fn document(routes: &[ServiceRoute]) -> String {
    let mut schemas = DocumentSchemas::new();
    let mut paths = Map::new();
    for route in routes {
        let method = route.method.name().to_lowercase();
        paths.insert(route.path.into(), json!({ method: schemas.operation(route) }));
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Nilometer recorder",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
        },
        "security": [{}, { "token": [] }, { "name_and_token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.take(),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "name_and_token": { "type": "http", "scheme": "basic" },
            },
        },
    });
    format!("{document:#}\n")
}

/// The generators of schemas. A type has one schema if the service writes it, and another if it reads it.
struct DocumentSchemas {
    written: SchemaGenerator,
    read: SchemaGenerator,
}

impl DocumentSchemas {
    fn new() -> Self {
        DocumentSchemas {
            written: settings().for_serialize().into_generator(),
            read: settings().for_deserialize().into_generator(),
        }
    }

    /// All schemas that operations refer to.
    fn take(mut self) -> Map<String, Value> {
        let mut all = self.read.take_definitions(true);
        all.extend(self.written.take_definitions(true));
        all
    }

    fn operation(&mut self, route: &ServiceRoute) -> Value {
        let mut answers = Map::new();
        for status in STATUSES.iter().filter(|status| has_status(route, status.code)) {
            answers.insert(status.code.to_string(), self.answer(route, status));
        }
        let mut operation = json!({
            "operationId": route.name,
            "summary": route.summary,
            "responses": answers,
        });
        if let Some(body) = route.body {
            let content = json!({ JSON: { "schema": self.body(body) } });
            operation["requestBody"] = json!({ "content": content });
        }
        if route.path.ends_with(ID) {
            operation["parameters"] = json!([id_parameter()]);
        }
        operation
    }

    fn answer(&mut self, route: &ServiceRoute, status: &AnswerStatus) -> Value {
        let error = AnswerContent { media: JSON, schema: ContentSchema::Json(schema_of::<ErrorAnswer>) };
        let errors = [error];
        let contents = if status.code < 300 { route.contents } else { &errors };
        let mut described = Map::new();
        for content in contents {
            described.insert(media_type(content.media).into(), self.content(&content.schema));
        }
        json!({ "description": status.meaning, "content": described })
    }

    fn content(&mut self, schema: &ContentSchema) -> Value {
        match schema {
            ContentSchema::Json(schema) => json!({ "schema": schema(&mut self.written) }),
            ContentSchema::Text => json!({ "schema": { "type": "string" } }),
            ContentSchema::Bytes => json!({}),
            ContentSchema::Events(events) => {
                let mut data = Map::new();
                for event in *events {
                    data.insert(event.name.into(), json!((event.data)(&mut self.written)));
                }
                // OpenAPI 3.1 has no word for the data of events.
                json!({ "schema": { "type": "string" }, "x-events": data })
            }
        }
    }

    fn body(&mut self, body: RouteBody) -> Value {
        match body {
            RouteBody::Options => json!(self.read.subschema_for::<RecordOptions>()),
            RouteBody::Arm => arm_body(&self.read),
            RouteBody::Dump => json!(self.read.subschema_for::<DumpRequest>()),
        }
    }
}

/// Schemas as a document of OpenAPI has them.
fn settings() -> SchemaSettings {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings
}

/// The options of one recording. Their key `metadata` is an object of the user.
fn arm_body(generator: &SchemaGenerator) -> Value {
    let mut settings = generator.settings().clone();
    settings.inline_subschemas = true;
    let mut schema = json!(settings.into_generator().root_schema_for::<RecordOptions>());
    schema["title"] = json!("ArmOptions");
    schema["properties"]["metadata"] = json!({
        "type": "object",
        "description": "An object of your own, for the summary of the recording",
    });
    schema
}

/// The number at the end of a path.
fn id_parameter() -> Value {
    json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } })
}

/// Returns true if this route may answer with this status.
fn has_status(route: &ServiceRoute, code: u16) -> bool {
    route.successes.contains(&code) || COMMON_ERRORS.contains(&code) || route.errors.contains(&code)
}

/// The type of a content without its parameters.
fn media_type(content: &str) -> &str {
    content.split(';').next().unwrap_or(content)
}
