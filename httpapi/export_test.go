package httpapi

import (
	"net/http"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/telematics"
)

// Paths of the probe routes, which are not in the contract.
const (
	ProbePath     = "/api/v1/client/probe/{id}"
	CardProbePath = "/api/v1/client/probe-card"
)

// NewProbed returns the public handler with additional routes of clients that only pass the gate
// and answer with their caller. Tests of the gate use them, so they do not depend on other routes.
func NewProbed(config Config) http.Handler {
	s := newServer(config)
	e := s.handler()
	answer := func(c *request.Call) error {
		return c.AnswerClient(http.StatusOK, "Passed.", map[string]any{"subject": c.Actor.Subject, "body": string(c.Body)})
	}
	add := func(method, path, activity string, options ...option) {
		g := request.Gate{Role: telematics.Admin, Activity: activity, Operation: &contract.Operation{}}
		for _, option := range append([]option{ofClient}, options...) {
			option(&g)
		}
		e.Add(method, echoPath(path), s.pipeline.Guard(g, answer))
	}
	add(http.MethodGet, ProbePath, "")
	add(http.MethodHead, ProbePath, "")
	add(http.MethodPost, ProbePath, "probe.change")
	add(http.MethodDelete, ProbePath, "probe.remove")
	add(http.MethodPost, CardProbePath, "probe.card", triesCard)
	return e
}
