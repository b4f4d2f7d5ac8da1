package wire_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/internal/wire"
)

// A server that answers with the name of the method, and one request to it.
func ExampleServe() {
	dir, err := os.MkdirTemp("", "wire-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- wire.Serve(ctx, listener, func(_ context.Context, req wire.Request) (any, error) {
			return map[string]string{"you asked for": req.Method}, nil
		})
	}()

	conn, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"time","params":{}}`)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	fmt.Print(answer)
	stop()
	fmt.Println(err, <-served)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"you asked for":"time"}}
	// <nil> <nil>
}
