"""What all answers are made with: pages, budgets, cards. Made once, before anything is rendered."""
