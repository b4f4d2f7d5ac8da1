package broker

import (
	"encoding/json"
	"math"
	"sync"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// Limits on what a server sends during a run. More is dropped.
const (
	maxNotices     = 1000     // of one run
	maxNoticeText  = 1000     // characters of a message
	maxNoticeBytes = 16 << 10 // of the data of a log message
)

// Notice is what a server sends during a call: progress, or a log message.
type Notice struct {
	ServerID, Tool string
	// Progress and Total are numbers of the server's choice. Total is 0 if it is unknown.
	Progress, Total float64
	Message         string
	Log             *LogMessage // nil: the notice is progress
}

// LogMessage is a log message of a server, with MCP's word for its level.
type LogMessage struct {
	Level, Logger string
	Data          json.RawMessage
}

// Notices receives what servers send during the calls of a run.
type Notices struct {
	// Level is the level from which on log messages are wanted; empty means none.
	Level string
	// On must return quickly. It is called by one call at a time.
	On func(Notice)

	mu   sync.Mutex
	told int
}

// pass passes a notification on, if the run wants it and has not had too many.
func (n *Notices) pass(a *attempt, method string, params json.RawMessage) {
	notice, ok := noticeOf(method, params)
	if !ok || notice.Log != nil && n.Level == "" {
		return
	}
	redactor := a.run.opts.Redactor
	notice.ServerID, notice.Tool = a.tool.ServerID, a.tool.Name
	notice.Message = catalog.Clean(redactor.Text(notice.Message))
	if log := notice.Log; log != nil {
		var err error
		if log.Data, err = redactor.JSONTexts(log.Data); err != nil {
			return
		}
		log.Logger = catalog.Clean(redactor.Text(log.Logger))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told++; n.told <= maxNotices {
		n.On(notice)
	}
}

// noticeOf reads the params of a notification of a server.
func noticeOf(method string, params json.RawMessage) (Notice, bool) {
	var read struct {
		Progress float64         `json:"progress"`
		Total    float64         `json:"total"`
		Message  string          `json:"message"`
		Level    string          `json:"level"`
		Logger   string          `json:"logger"`
		Data     json.RawMessage `json:"data"`
	}
	if strictjson.UnmarshalOpen(params, &read) != nil {
		return Notice{}, false
	}
	switch method {
	case upstream.NoticeProgress:
		notice := Notice{Progress: read.Progress, Total: read.Total,
			Message: truncate.Characters(read.Message, maxNoticeText)}
		return notice, !math.IsInf(read.Progress, 0) && read.Progress >= 0
	case upstream.NoticeMessage:
		log := &LogMessage{read.Level, truncate.Characters(read.Logger, maxNoticeText), read.Data}
		return Notice{Log: log}, len(read.Data) > 0 && len(read.Data) <= maxNoticeBytes
	}
	return Notice{}, false
}
