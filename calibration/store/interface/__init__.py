"""The calls of the store, by what they are about; each says who may make it."""
