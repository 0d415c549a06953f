"""The JSON Schema of a document, from its declared fields. It rejects what the reader rejects, except for wrong names
of time zones."""

from trimtab.cluster.documents.declared_fields import DocumentSection
from trimtab.cluster.documents.value_types import Schema


def schema_of(section: DocumentSection) -> Schema:
    """Returns the JSON Schema of a section. Null is allowed if no field is required, because YAML
    reads a key without a value as null."""
    others = section.others.document if section.others is not None else None
    properties: Schema = {}
    if others is not None and others.keys is not None:
        properties = dict.fromkeys(others.keys.names, others.type.schema)
    for key in section.keys:
        schemas = [section.fields[key].document.type.schema] if key in section.fields else []
        schemas += [schema_of(section.sections[key])] if key in section.sections else []
        properties[key] = {"anyOf": schemas} if len(schemas) > 1 else schemas[0]
    required = [key for key, one in section.fields.items() if one.document.required]
    kind: Schema = {"type": "object", "required": required} if required else {"type": ["object", "null"]}
    schema: Schema = {**kind, "additionalProperties": False, "properties": properties}
    if others is not None and others.keys is not None:
        schema["patternProperties"] = {others.keys.mark: others.type.schema}
    excluded = [
        {"required": [one.document.instead_of, key]} for key, one in section.fields.items() if one.document.instead_of
    ]
    # Both keys set the same field; the reader refuses both together, too.
    return {**schema, **({"not": excluded[0] if len(excluded) == 1 else {"anyOf": excluded}} if excluded else {})}
