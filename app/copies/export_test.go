package copies

import (
	"context"
	"time"
)

// Attempt copies what is new, as Start does again and again, and returns the error.
func (c *Copies) Attempt(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copyLocked(ctx)
}

// Compare has the next Attempt compare all runs, as if wholeInterval had passed.
func (c *Copies) Compare() { c.whole = time.Time{} }
