package verb

import (
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/images"
)

// OpenConfigured opens an image with the packages that the configuration adds.
func OpenConfigured(c *config.Config, home string, definition images.Definition) (images.Image, error) {
	extra, err := c.ExtraPackages(definition.Language)
	if err != nil {
		return images.Image{}, err
	}
	return images.OpenWith(home, definition.Name, extra)
}
