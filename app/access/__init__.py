"""Who is let in: sign-in, its pages, and the door before the app."""
