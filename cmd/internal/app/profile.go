package app

import (
	"net/http"
	"net/http/pprof"
)

// serveProfiles lets an operator see where time and memory go. The command line, which the package shows too, stays
// here: flags may be secrets.
func serveProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and those that runtime/pprof has by name
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}
