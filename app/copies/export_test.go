package copies

import "context"

// Attempt copies what is new, as Start does again and again, and returns the error.
func (c *Copies) Attempt(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copyLocked(ctx)
}
