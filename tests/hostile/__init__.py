"""Hostile files for every command that reads one: each is taken, set aside or refused."""
