package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a gateway answers is no answer of the service, although it is JSON.
func TestAttempt_AnAnswerOfAGatewayIsAnError(t *testing.T) {
	for text, is := range map[string]string{
		`{"message":"Bad Gateway"}`:              "status 502",
		`<html>`:                                 "status 502",
		`{"success":false,"error":{"code":"x"}}`: "x",
		`{"success":true}`:                       "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte(text))
		}))
		c := &client{base: server.URL}
		_, _, err := c.attempt(t.Context(), http.MethodPost, "/", "", nil)
		server.Close()
		if (err == nil) != (is == "") || err != nil && !strings.Contains(err.Error(), is) {
			t.Errorf("%s: %v, want %q", text, err, is)
		}
	}
}
