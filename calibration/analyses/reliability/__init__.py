"""What files and stores say of an agent's behaviour: `tools` of a file of conversations."""
