package httpapi_test

import "net/http"

// asClient sends a request as the client "client-1" of agency 1, through its agency's app, if nothing else is said.
func (a *api) asClient(method, target string, change ...func(*http.Request)) *response {
	a.t.Helper()
	return a.do(method, target, append([]func(*http.Request){withToken(clientToken(a.t))}, change...)...)
}
