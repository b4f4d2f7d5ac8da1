package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed assets/*.js assets/*.css assets/*.svg assets/*.LICENSE
var assetFiles embed.FS

// asset serves the files that pages load, and the licence of htmx. They are the same for
// everyone, so a browser may cache them and revalidate.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	name := path.Join("assets", r.PathValue("name"))
	content, err := fs.ReadFile(assetFiles, name)
	if err != nil {
		c.notRouted(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(content)))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}
