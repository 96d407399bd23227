//! All routes of the HTTP server. The server answers by this table, and describes itself by it.

use super::{
    answers::{BYTES, EVENTS, HTML, HttpResponse, JSON, TEXT, json_answer, report},
    dumps::{begin_dump, end_dump},
    events::{ENDED_EVENT, STATUS_EVENT},
    live::{LivePage, NoPicture, latest_frame, live},
    openapi,
    orders::{arm, ordered, wishes},
    page,
    request::BadRequest,
    route::{
        AnswerContent, ContentSchema, EventSchema, RouteAnswer, RouteBody, RouteMethod, RoutedRequest,
        ServiceRoute, schema_of,
    },
};
use crate::{
    dump::{DumpList, DumpReport},
    metrics::metrics,
    state::{EndedScan, RecorderOrder, ServiceReport},
};

const STATE: AnswerContent =
    AnswerContent { media: JSON, schema: ContentSchema::Json(schema_of::<ServiceReport>) };

const EVENT_SCHEMAS: &[EventSchema] = &[
    EventSchema { name: STATUS_EVENT, data: schema_of::<ServiceReport> },
    EventSchema { name: ENDED_EVENT, data: schema_of::<EndedScan> },
];

const DUMP: AnswerContent =
    AnswerContent { media: JSON, schema: ContentSchema::Json(schema_of::<DumpReport>) };

/// The errors of orders.
const ORDER_ERRORS: &[u16] = &[409, 500, 503];

/// All routes.
pub(super) static ROUTES: [ServiceRoute; 14] = [
    ServiceRoute {
        name: "page",
        summary: "The page of the recorder for browsers",
        contents: &[AnswerContent { media: HTML, schema: ContentSchema::Text }],
        ..get("/", |asked| HttpResponse(200, HTML, page::page(asked.nonce).into()))
    },
    ServiceRoute {
        name: "status",
        summary: "The state, the figures and files of the recording, and the recording that ended last",
        contents: &[STATE],
        ..get("/status", |asked| report(200, &asked.console.report()))
    },
    ServiceRoute {
        name: "events",
        summary: "Server-sent events: the state at once and at each change, and recordings that ended",
        contents: &[AnswerContent { media: EVENTS, schema: ContentSchema::Events(EVENT_SCHEMAS) }],
        errors: &[503],
        answer: RouteAnswer::Events,
        ..get("/events", |asked| report(200, &asked.console.report()))
    },
    ServiceRoute {
        name: "live",
        summary: "The data of the page: the state, the last five minutes, and the recordings that ended last",
        contents: &[AnswerContent { media: JSON, schema: ContentSchema::Json(schema_of::<LivePage>) }],
        ..get("/live", |asked| live(asked.console.live()))
    },
    ServiceRoute {
        name: "latest_frame",
        summary: "The latest frame: a line of JSON and a byte a pixel, or JSON with the reason why there is none",
        contents: &[
            AnswerContent { media: BYTES, schema: ContentSchema::Bytes },
            AnswerContent { media: JSON, schema: ContentSchema::Json(schema_of::<NoPicture>) },
        ],
        ..get("/latest-frame", |asked| latest_frame(asked.console.latest_frame()))
    },
    ServiceRoute {
        name: "metrics",
        summary: "The figures in the text format of Prometheus",
        contents: &[AnswerContent { media: TEXT, schema: ContentSchema::Text }],
        ..get("/metrics", |asked| {
            HttpResponse(
                200,
                TEXT,
                metrics(&asked.console.report(), asked.console.dumps().counts().as_ref()).into(),
            )
        })
    },
    ServiceRoute {
        name: "openapi",
        summary: "This description, in OpenAPI 3.1",
        contents: &[AnswerContent {
            media: JSON,
            schema: ContentSchema::Json(schema_of::<serde_json::Value>),
        }],
        ..get("/openapi.json", |_| HttpResponse(200, JSON, openapi_document().into()))
    },
    ServiceRoute {
        name: "configure",
        summary: "Use these options over those in the service's file",
        body: Some(RouteBody::Options),
        ..post("/configure", |asked| ordered(asked.console, wishes(asked.body).map(RecorderOrder::Configure)))
    },
    ServiceRoute {
        name: "arm",
        summary: "Prepare a recording with these options, or wait for a series over TCP",
        body: Some(RouteBody::Arm),
        ..post("/arm", |asked| ordered(asked.console, arm(asked.body)))
    },
    ServiceRoute {
        name: "start",
        summary: "Begin the armed recording",
        ..post("/start", |asked| ordered(asked.console, Ok(RecorderOrder::Start)))
    },
    ServiceRoute {
        name: "stop",
        summary: "End the recording, and wait until all is stored",
        ..post("/stop", |asked| ordered(asked.console, Ok(RecorderOrder::Stop)))
    },
    ServiceRoute {
        name: "dump",
        summary: "Save a part of the running recording as a file of its own, before the recorder overwrites it",
        body: Some(RouteBody::Dump),
        successes: &[202],
        contents: &[DUMP],
        errors: &[409, 429, 500],
        ..post("/dump", |asked| begin_dump(asked.console.dumps(), asked.body))
    },
    ServiceRoute {
        name: "dumps",
        summary: "The dumps that run or have ended, the oldest first",
        contents: &[AnswerContent { media: JSON, schema: ContentSchema::Json(schema_of::<DumpList>) }],
        ..get("/dumps", |asked| json_answer(200, &asked.console.dumps().list()))
    },
    ServiceRoute {
        method: RouteMethod::Delete,
        name: "end_dump",
        summary: "Ask a running dump to end without a file. A complete one stays",
        contents: &[DUMP],
        errors: &[404],
        ..get("/dumps/{id}", |asked| end_dump(asked.console.dumps(), asked.id))
    },
];

/// A question.
const fn get(path: &'static str, answer: fn(&RoutedRequest<'_>) -> HttpResponse) -> ServiceRoute {
    ServiceRoute {
        method: RouteMethod::Get,
        path,
        name: "",
        summary: "",
        body: None,
        successes: &[200],
        contents: &[],
        errors: &[],
        answer: RouteAnswer::Whole(answer),
    }
}

/// An order: its answer is the state.
const fn post(path: &'static str, answer: fn(&RoutedRequest<'_>) -> HttpResponse) -> ServiceRoute {
    ServiceRoute {
        method: RouteMethod::Post,
        successes: &[200, 202],
        contents: &[STATE],
        errors: ORDER_ERRORS,
        ..get(path, answer)
    }
}

/// The route of a request, with the number in its path.
#[derive(Debug)]
pub(super) struct FoundRoute<'a> {
    pub(super) route: &'static ServiceRoute,
    pub(super) id: &'a str,
}

/// The route of a request.
pub(super) fn find<'a>(method: &str, path: &'a str) -> Result<FoundRoute<'a>, BadRequest> {
    let found = ROUTES.iter().find_map(|route| Some(FoundRoute { route, id: route.id_in(path)? }));
    let found = found.ok_or(BadRequest(404, NO_PATH))?;
    match found.route.method {
        wanted if wanted.name() == method => Ok(found),
        RouteMethod::Get => Err(BadRequest(405, "use GET")),
        RouteMethod::Post => Err(BadRequest(405, "use POST")),
        RouteMethod::Delete => Err(BadRequest(405, "use DELETE")),
    }
}

const NO_PATH: &str = "there is GET /, /status, /events, /live, /latest-frame, /metrics, /openapi.json, /dumps; POST /configure, /arm, /start, /stop, /dump; DELETE /dumps/ID";

/// The description of all requests and answers, in OpenAPI 3.1.
pub fn openapi_document() -> String {
    openapi::document(&ROUTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the route and the number in the path, or the status of the refusal.
    fn found(method: &str, path: &str) -> Result<(&'static str, String), u16> {
        let found = find(method, path).map_err(|BadRequest(status, _)| status)?;
        Ok((found.route.name, found.id.to_owned()))
    }

    #[test]
    fn a_path_may_end_in_a_number() {
        assert_eq!(found("GET", "/dumps"), Ok(("dumps", String::new())));
        assert_eq!(found("DELETE", "/dumps/17"), Ok(("end_dump", "17".into())));
        assert_eq!(found("GET", "/dumps/17"), Err(405));
        assert_eq!(found("DELETE", "/status"), Err(405));
        for unknown in ["/dumps/", "/dumps/1/2", "/dump/1", "/dumps{id}", "/"] {
            assert_ne!(found("DELETE", unknown).ok(), Some(("end_dump", String::new())), "{unknown}");
            assert!(found("DELETE", unknown).is_err(), "{unknown}");
        }
        assert_eq!(found("POST", "/nothing"), Err(404));
    }
}
