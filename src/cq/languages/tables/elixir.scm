; Elixir. Everything is a call: `def` and `defmodule` too; the code tells them apart.

[(identifier) (alias)] @ref
(comment) @comment
(unary_operator "@" operand: (call target: (identifier) @word
  (#any-of? @word "doc" "typedoc" "spec" "impl" "deprecated" "since" "dialyzer" "tag"))) @attribute
(unary_operator "@" operand: (call target: (identifier) @word (arguments (_) @value)
  (#any-of? @word "doc" "typedoc" "moduledoc"))) @doc
(unary_operator "@" operand: (call target: (identifier) @word (arguments . (_) @value)
  (#any-of? @word "type" "typep" "opaque" "callback" "macrocallback" "spec"))) @typed

(call target: (identifier) @word (#match? @word "^(def|test$|describe$)")) @define
(call target: (identifier) @word (arguments . (alias) @module)
  (#any-of? @word "alias" "import" "require" "use")) @import
(call target: (identifier) @word (arguments . (dot left: (alias) @module))
  (#any-of? @word "alias" "import" "require" "use")) @import
(call target: [(identifier) (dot)] @callee) @call
