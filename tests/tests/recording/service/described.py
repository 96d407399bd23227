"""Checks answers of a recorder against its own description: each line of stdin is a request and its answer."""
import json, sys
from jsonschema import Draft202012Validator

document, *lines = [json.loads(line) for line in sys.stdin]


def resolved(schema):
    while "$ref" in schema:
        part = document
        for key in schema["$ref"].removeprefix("#/").split("/"):
            part = part[key]
        schema = part
    return schema


def unknown(value, schema, at):
    """The keys of a value that its schema does not have."""
    schema = resolved(schema)
    choices = [choice for choice in schema.get("anyOf", []) if resolved(choice).get("type") != "null"]
    if len(choices) == 1:
        schema = resolved(choices[0])
    if isinstance(value, dict) and "properties" in schema:
        for key, below in value.items():
            if key not in schema["properties"]:
                yield f"{at}/{key}"
            else:
                yield from unknown(below, schema["properties"][key], f"{at}/{key}")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for below in value:
            yield from unknown(below, schema["items"], f"{at}[]")


for name, schema in document["components"]["schemas"].items():
    Draft202012Validator.check_schema(schema)
for line in lines:
    operation = document["paths"][line["path"]][line["method"].lower()]
    answer = operation["responses"][str(line["status"])]
    if line.get("event"):
        schema = answer["content"]["text/event-stream"]["x-events"][line["event"]]
    else:
        schema = answer["content"]["application/json"]["schema"]
    whole = {**schema, "components": document["components"]}
    errors = [f"{list(error.path)}: {error.message[:200]}" for error in Draft202012Validator(whole).iter_errors(line["answer"])]
    errors += list(unknown(line["answer"], schema, ""))
    if line.get("body") is not None:
        whole = {**operation["requestBody"]["content"]["application/json"]["schema"], "components": document["components"]}
        errors += [f"body: {error.message[:200]}" for error in Draft202012Validator(whole).iter_errors(line["body"])]
    print(line["method"], line["path"], line["status"], line.get("event") or "", "; ".join(errors) or "right")
