package enrolment

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
)

const (
	maxRequest    = 16 << 10 // bytes; a request with an RSA key of 4096 bits has 2 KiB
	maxConcurrent = 4        // each reads and writes the folder's files
)

// Handler answers POST /v1/enrol: a code as bearer token, and a certificate request as PEM, get a
// certificate. It belongs behind TLS: the code is a secret.
func Handler(a *Authority, log *slog.Logger) http.Handler {
	places := make(chan struct{}, maxConcurrent)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/enrol", func(w http.ResponseWriter, r *http.Request) {
		text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			http.Error(w, "want Authorization: Bearer, and the code", http.StatusUnauthorized)
			return
		}
		request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			http.Error(w, "want a certificate request of at most 16 KiB", http.StatusRequestEntityTooLarge)
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests at the moment: repeat it", http.StatusServiceUnavailable)
			return
		}
		chain, issued, err := a.Issue(r.Context(), text, request)
		switch {
		case errors.Is(err, ErrCode), errors.Is(err, ErrRequest):
			status := http.StatusUnauthorized
			if errors.Is(err, ErrRequest) {
				status = http.StatusBadRequest
			}
			log.Warn("enrolment refused", "from", r.RemoteAddr, "err", err)
			http.Error(w, err.Error(), status)
			return
		case err != nil:
			log.Error("enrolment failed", "from", r.RemoteAddr, "err", err)
			http.Error(w, "not issued: repeat the request", http.StatusServiceUnavailable)
			return
		case issued.Serial == "":
			log.Info("certificate handed out again", "unit", issued.Unit, "from", r.RemoteAddr)
		default:
			log.Info("certificate issued", "unit", issued.Unit, "serial", issued.Serial, "expires", issued.Expires, "from", r.RemoteAddr)
		}
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(chain)
	})
	return mux
}
