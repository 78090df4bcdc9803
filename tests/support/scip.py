"""SCIP by Google's own protobuf: the messages of the public schema, from their names, numbers and types."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# message -> field -> (number, type; `*` is repeated). As in scip.proto of github.com/sourcegraph/scip.
_SCHEMA: dict[str, dict[str, tuple[int, str]]] = {
    "Index": {"metadata": (1, "Metadata"), "documents": (2, "*Document"),
              "external_symbols": (3, "*SymbolInformation")},
    "Metadata": {"version": (1, "int32"), "tool_info": (2, "ToolInfo"), "project_root": (3, "string"),
                 "text_document_encoding": (4, "int32")},
    "ToolInfo": {"name": (1, "string"), "version": (2, "string"), "arguments": (3, "*string")},
    "Document": {"language": (4, "string"), "relative_path": (1, "string"), "occurrences": (2, "*Occurrence"),
                 "symbols": (3, "*SymbolInformation"), "text": (5, "string"), "position_encoding": (6, "int32")},
    "SymbolInformation": {"symbol": (1, "string"), "documentation": (3, "*string"),
                          "relationships": (4, "*Relationship"), "kind": (5, "int32"), "display_name": (6, "string"),
                          "signature_documentation": (7, "Document"), "enclosing_symbol": (8, "string")},
    "Relationship": {"symbol": (1, "string"), "is_reference": (2, "bool"), "is_implementation": (3, "bool"),
                     "is_type_definition": (4, "bool"), "is_definition": (5, "bool")},
    "Occurrence": {"range": (1, "*int32"), "symbol": (2, "string"), "symbol_roles": (3, "int32"),
                   "override_documentation": (4, "*string"), "syntax_kind": (5, "int32"),
                   "enclosing_range": (7, "*int32")},
}  # fmt: skip


def new_index() -> Any:
    """An empty scip.Index; ParseFromString and SerializeToString are what other programs use."""
    file = descriptor_pb2.FileDescriptorProto(name="scip.proto", package="scip", syntax="proto3")
    kinds = {"string": 9, "int32": 5, "bool": 8}
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            plain = kind.removeprefix("*")
            row = message.field.add(
                name=field, number=number, label=3 if kind != plain else 1, type=kinds.get(plain, 11)
            )
            if plain not in kinds:
                row.type_name = f".scip.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("scip.Index"))()
