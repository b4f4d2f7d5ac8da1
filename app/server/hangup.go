package server

import (
	"context"
	"time"
)

// promptWithin bounds how long a host that has closed its end is still answered.
// Hosts wait longer before they send SIGTERM.
const promptWithin = time.Second

// isPrompt tells which requests are answered from what is known, without work that a
// host could have lost its interest in by closing its end.
var isPrompt = map[string]bool{
	"initialize": true, "server/discover": true, "ping": true, "logging/setLevel": true,
	"tools/list": true, "prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
}

// answerPrompt waits until every prompt request is answered, promptWithin has passed,
// or ctx ends. The session would cancel them with the end of its input; who writes
// a whole conversation into a pipe and closes it expects answers.
func (f *lineFilter) answerPrompt(ctx context.Context) {
	f.mu.Lock()
	prompt := make(chan struct{})
	f.prompt = prompt
	f.noticePromptLocked()
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, promptWithin)
	defer cancel()
	select {
	case <-prompt:
	case <-ctx.Done():
	}
}

// noticePromptLocked closes prompt, once, when no prompt request is left without its answer.
func (f *lineFilter) noticePromptLocked() {
	if f.prompt == nil {
		return
	}
	for _, method := range f.unanswered {
		if isPrompt[method] {
			return
		}
	}
	close(f.prompt)
	f.prompt = nil
}
