; What TypeScript and JavaScript share. Captures are explained in cq/syntax/language.py; there is one in every pattern.

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
(decorator) @decorator

(import_statement) @import
(export_statement) @export

(lexical_declaration) @declare
(variable_declaration) @declare
(assignment_expression) @flow.assign
(augmented_assignment_expression left: [(subscript_expression) (identifier)] operator: ["||=" "??="]) @flow.assign
(pair key: (_) value: [(arrow_function) (function_expression) (generator_function) (class)]) @pair

(function_declaration) @symbol.function
(generator_function_declaration) @symbol.function
(method_definition) @symbol.method
(class_declaration) @symbol.class
(function_expression) @symbol.expression
(generator_function) @symbol.expression
(class) @symbol.class_expression
(function_expression) @nameless
(generator_function) @nameless
(arrow_function) @nameless

(for_in_statement) @flow.for
(if_statement) @branch.if
(for_statement) @branch.loop
(while_statement) @branch.loop
(do_statement) @branch.loop
(switch_statement) @branch.switch
(try_statement) @branch.try
(catch_clause) @flow.catch
(return_statement) @flow.return
(throw_statement) @flow.raise
(await_expression) @flow.await
(yield_expression) @flow.yield

(call_expression) @call
(new_expression) @call.new
