"""What tests share: the fixture language and the checks."""
