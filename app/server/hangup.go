package server

import (
	"context"
	"time"
)

// promptWithin is the grace period for answers after a host has closed its end. Hosts wait
// longer than that before they send SIGTERM.
const promptWithin = time.Second

// isPrompt lists the requests that are answered without delay, so that they are answered even
// after the host has closed its end.
var isPrompt = map[string]bool{
	"initialize": true, "server/discover": true, "ping": true, "logging/setLevel": true,
	"tools/list": true, "prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
}

// answerPrompt waits until every prompt request is answered, promptWithin has passed,
// or ctx ends. Without it, the session would cancel them at the end of its input. A client
// that writes a whole conversation into a pipe and closes it expects answers.
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

// noticePromptLocked closes prompt, once, when every prompt request is answered.
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
