package doctor

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/catalog"
)

// embeddings requests one vector from the embeddings endpoint.
func (e *Examination) embeddings(ctx context.Context) (string, error) {
	searcher, err := upstreams.OpenEmbeddings(ctx, e.Config, "")
	if err != nil {
		return "", err
	}
	snapshot, err := catalog.NewSnapshot([]catalog.Server{{ID: "airlock", Tools: []catalog.Tool{
		{ServerID: "airlock", Name: "read_file", Description: "Reads a file."}}}})
	if err != nil {
		return "", err
	}
	wanted := e.Config.Embeddings
	if err := searcher.Learn(ctx, snapshot); err != nil {
		return "", fmt.Errorf("searches find tools by words alone: %w", err)
	}
	if wanted.Table != "" {
		return fmt.Sprintf("the table %s; nothing leaves this machine", wanted.Table), nil
	}
	return fmt.Sprintf("%s by %s; the texts of tools and the questions of searches are sent there", wanted.URL,
		wanted.Model), nil
}
