"""From raw AI-agent traces to one Agent Success Rate that a team can defend."""
