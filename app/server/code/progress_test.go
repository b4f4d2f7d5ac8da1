package code

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A host that gives a progress token gets a notification every second, and none after the answer.
func TestProgress(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testProgress(t, version) })
		})
	}
}

func testProgress(t *testing.T, version string) {
	s, runs := newServer(t)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(t.Context(), in, out)
		out.Close()
	}()
	heard := make(chan string, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			heard <- fmt.Sprintf("%v %g %s", req.Params.ProgressToken, req.Params.Progress, req.Params.Message)
		},
	})
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	params := &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "python", "code": "wait"}}
	params.SetProgressToken("token")
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	if _, err := session.CallTool(ctx, params); err == nil {
		t.Error("got a result, want the call cancelled")
	}
	<-runs.ended
	time.Sleep(10 * time.Second) // on the bubble's clock: nothing more may come
	synctest.Wait()
	close(heard)
	var got []string
	for line := range heard {
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"token 1 running for 1 s, 2 calls: printed <>&",
		"token 2 running for 2 s, 2 calls: printed <>&"}, got); diff != "" {
		t.Errorf("progress differs (-want +got):\n%s", diff)
	}
	session.Close()
	toServer.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}
