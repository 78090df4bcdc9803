; What TypeScript and JavaScript share. Captures are explained in cq/syntax/language.py.

[
  (identifier)
  (property_identifier)
  (private_property_identifier)
  (shorthand_property_identifier)
  (shorthand_property_identifier_pattern)
] @ref
(statement_identifier) @ref.label
(pair key: (property_identifier) @role.keyword)
(pair_pattern key: (property_identifier) @role.keyword)
(update_expression argument: (identifier) @role.assignment)
(augmented_assignment_expression left: (identifier) @role.assignment)

(comment) @comment
(decorator) @attribute
(decorator (_) @value) @decorator

(import_statement) @import
(export_statement) @export

(lexical_declaration) @declare
(variable_declaration) @declare
(assignment_expression left: (_) @target right: (_) @value) @flow.assign
(augmented_assignment_expression
  left: (subscript_expression) @target operator: ["||=" "??="] right: (_) @value) @flow.assign
(pair key: (_) @name value: [(arrow_function) (function_expression) (generator_function) (class)] @value) @pair

(function_declaration name: (_) @name parameters: (_) @params body: (_) @body) @symbol.function
(generator_function_declaration name: (_) @name parameters: (_) @params body: (_) @body) @symbol.function
(method_definition name: (_) @name parameters: (_) @params body: (_) @body) @symbol.method
(class_declaration name: (_) @name) @symbol.class
(function_expression name: (_) @name body: (_) @body) @symbol.expression
(generator_function name: (_) @name body: (_) @body) @symbol.expression
(class name: (_) @name) @symbol.class_expression
(function_expression parameters: (_) @params) @nameless
(generator_function parameters: (_) @params) @nameless
(arrow_function parameters: (_) @params) @nameless
(arrow_function parameter: (identifier) @name) @only

(for_in_statement left: (_) @target) @flow.for
(catch_clause) @flow.catch
(return_statement) @flow.return
(throw_statement) @flow.raise
(await_expression) @flow.await
(yield_expression) @flow.yield

(call_expression function: (_) @callee) @call
(new_expression constructor: (_) @callee) @call.new
