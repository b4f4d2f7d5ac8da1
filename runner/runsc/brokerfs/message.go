package brokerfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// The kinds of messages that this server knows (gVisor, pkg/lisafs, MID).
const (
	kindError            = 0
	kindMount            = 1
	kindChannel          = 2
	kindFStat            = 3
	kindWalk             = 5
	kindWalkStat         = 6
	kindOpenAt           = 7
	kindClose            = 9
	kindFStatFS          = 17
	kindConnect          = 21
	kindGetdents64       = 24
	kindConnectWithCreds = 32
)

// maxMessage is the longest payload of either side: a request holds at most a
// few names, an answer a few stats.
const maxMessage = 4 << 10

// socketHeader is the length of the header of a message on the socket: length
// of the payload (4 bytes), kind (2), and 2 unused.
const socketHeader = 8

// message is a request or an answer.
type message struct {
	kind    uint16
	payload []byte
	fds     []int // of an answer; closed once they are sent
}

// readMessage reads one request into buffer. The message is valid until the next call.
func readMessage(r io.Reader, buffer []byte) (message, error) {
	header := buffer[:socketHeader]
	if _, err := io.ReadFull(r, header); err != nil {
		return message{}, err
	}
	size := binary.LittleEndian.Uint32(header)
	kind := binary.LittleEndian.Uint16(header[4:])
	if size > maxMessage {
		return message{}, errors.New("lisafs: a message is too long")
	}
	payload := buffer[socketHeader : socketHeader+size]
	if _, err := io.ReadFull(r, payload); err != nil {
		return message{}, err
	}
	return message{kind: kind, payload: payload}, nil
}

func writeMessage(conn *net.UnixConn, m message) error {
	out := make([]byte, 0, socketHeader+len(m.payload))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(m.payload)))
	out = binary.LittleEndian.AppendUint16(out, m.kind)
	out = binary.LittleEndian.AppendUint16(out, 0)
	out = append(out, m.payload...)
	var rights []byte
	if len(m.fds) > 0 {
		rights = unix.UnixRights(m.fds...)
	}
	_, _, err := conn.WriteMsgUnix(out, rights, nil)
	return err
}

// encode lays values of fixed size out one after the other, as the protocol
// does on both architectures gVisor runs on.
func encode(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err) // only for a value without a fixed size
		}
	}
	return b.Bytes()
}

// decode reads a value of fixed size and ignores any bytes that follow.
func decode(payload []byte, v any) error {
	if _, err := binary.Decode(payload, binary.LittleEndian, v); err != nil {
		return unix.EIO
	}
	return nil
}

// names reads a list of names behind a descriptor number.
func names(payload []byte) (dir uint64, list []string, err error) {
	le := binary.LittleEndian
	if len(payload) < 10 {
		return 0, nil, unix.EIO
	}
	dir, count, rest := le.Uint64(payload), int(le.Uint16(payload[8:])), payload[10:]
	for range count {
		if len(rest) < 2 {
			return 0, nil, unix.EIO
		}
		size := int(le.Uint16(rest))
		if rest = rest[2:]; len(rest) < size {
			return 0, nil, unix.EIO
		}
		list, rest = append(list, string(rest[:size])), rest[size:]
	}
	return dir, list, nil
}
