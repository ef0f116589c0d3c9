package httpapi_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"motorpool/httpapi"
	"motorpool/httpapi/request"
	"motorpool/internal/require"
	"motorpool/rental"
)

const (
	probe  = "/api/v1/client/probe/7?status=active&limit=20"
	theKey = "ak_1"
)

func TestSignature_SignedRequestPassesAndNamesItsAgency(t *testing.T) {
	a := probedAPI(t)
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		r := a.asClient(method, probe, withJSON(`{"a": 1}`)).wants(200, "")
		r.has("subject", "client-1", "body", `{"a": 1}`).meta("agency_id", 1.0, "agency_code", "AG1")
	}
	a.asClient(http.MethodHead, probe).answers(200)
	a.get(probe, clientOf(2, "anna")).wants(200, "").meta("agency_code", "AG2")
	if a.signatures.count() != 2 || strings.Contains(a.log.String(), "v1=") {
		t.Errorf("%d nonces used; log:\n%s", a.signatures.count(), a.log)
	}
}

func ofOtherApp(s *signature) { s.key = appKey(2) }

// signedAt signs as if the time differed.
func signedAt(skew time.Duration) func(*http.Request) {
	return signedBy(func(s *signature) { s.at = now.Add(skew) })
}

// addressed changes the target of the request after it was signed.
func addressed(target string) func(*http.Request) {
	return func(r *http.Request) {
		other := httptest.NewRequest(r.Method, target, nil)
		r.URL, r.RequestURI = other.URL, other.RequestURI
	}
}

func headerChanged(change func(string) string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set(rental.SignatureHeader, change(r.Header.Get(rental.SignatureHeader)))
	}
}

func replaced(old, by string) func(*http.Request) {
	return headerChanged(func(h string) string { return strings.Replace(h, old, by, 1) })
}

const otherSigned = "something else was signed"

func TestSignature_OfAnotherRequestIsRefused(t *testing.T) {
	other := appKey(1)
	other.Secret = appKey(2).Secret
	revoked, retired, unknown, empty := appKey(1), appKey(1), appKey(1), appKey(1)
	revoked.ID, revoked.State = "revoked", rental.KeyRevoked
	retired.ID, retired.State, retired.Retires = "retired", rental.KeyRetiring, now
	// Its secret is the one that the service uses in place of an unknown key's.
	unknown.ID, unknown.Secret = "unknown", make([]byte, rental.SecretSize)
	empty.ID, empty.Secret = "empty", nil
	with := func(k rental.AgencyKey) func(*http.Request) {
		return signedBy(func(s *signature) { s.key = k })
	}
	const invalid, missing, stale = "agency_signature_invalid", "agency_signature_missing", "agency_signature_stale"
	for name, c := range map[string]struct {
		code   string
		change changes
		says   string // a hint for the app's developer
	}{
		"wrong secret":         {invalid, changes{with(other)}, "not known or no longer valid, or something else was signed"},
		"changed body":         {invalid, changes{signed, withBody(`{"a":2}`)}, "body"},
		"changed query":        {invalid, changes{signed, addressed("/api/v1/client/probe/7?status=active&limit=200")}, "raw query"},
		"re-encoded query":     {invalid, changes{signed, addressed("/api/v1/client/probe/7?status=%61ctive&limit=20")}, "raw query"},
		"changed path":         {invalid, changes{signed, addressed("/api/v1/client/probe/8?status=active&limit=20")}, "path"},
		"re-encoded path":      {invalid, changes{signed, addressed("/api/v1/client/probe/%37?status=active&limit=20")}, "path"},
		"changed method":       {invalid, changes{signed, func(r *http.Request) { r.Method = http.MethodDelete }}, "method"},
		"changed token":        {invalid, changes{signed, clientOf(1, "client-2")}, "access token"},
		"another key's name":   {invalid, changes{signed, replaced("k="+theKey, "k=ak_2")}, otherSigned},
		"revoked key":          {invalid, changes{with(revoked)}, "no longer valid"},
		"retired key":          {invalid, changes{with(retired)}, "no longer valid"},
		"unknown key":          {invalid, changes{with(unknown)}, "not known"},
		"a key without secret": {invalid, changes{with(empty)}, "not known"},
		"stale": {stale, changes{signedAt(-301 * time.Second)},
			"2026-01-02T09:54:59.000Z, and it is 2026-01-02T10:00:00.250Z here"},
		"from the future": {stale, changes{signedAt(301 * time.Second)}, "at most 300 seconds"},
		"stale and wrong": {invalid, changes{signedBy(func(s *signature) { s.key, s.at = other, now.Add(-time.Hour) })}, otherSigned},
		"missing":         {missing, changes{withoutSignature}, "X-Agency-Signature: k=<key id>,t="},
		"two headers": {invalid, changes{signed, func(r *http.Request) {
			r.Header.Add("X-Agency-Signature",
				r.Header.Get("X-Agency-Signature"))
		}}, "more than one header"},
		"two and one is empty": {invalid, changes{signed, withHeader("X-Agency-Signature", "")}, "more than one header"},
		"a space":              {invalid, changes{signed, replaced(",t=", ", t=")}, "without spaces"},
		"encoded body":         {invalid, changes{withHeader("Content-Encoding", "gzip"), signed}, "Content-Encoding"},
	} {
		t.Run(name, func(t *testing.T) {
			a := probedAPI(t)
			a.agencyKeys.byID["revoked"], a.agencyKeys.byID["retired"], a.agencyKeys.byID["empty"] = revoked, retired, empty
			r := a.asClient(http.MethodPost, probe, append(changes{withJSON(`{"a":1}`)}, c.change...)...).wants(401, c.code)
			if got := r.header.Get("WWW-Authenticate"); got != `Motorpool-Signature realm="motorpool", header="X-Agency-Signature"` {
				t.Errorf("challenge %q", got)
			}
			if !strings.Contains(r.body.Message, c.says) || r.body.Error.Retryable || r.body.Error.Outcome != nil {
				t.Errorf("message %s, want %q", r.text, c.says)
			}
			same(t, a.signatures.count(), 0, "signatures")
			a.wantsEntries()
			if strings.Contains(a.log.String(), "v1=") {
				t.Errorf("the signature is in the log:\n%s", a.log)
			}
		})
	}
}

// Neither the message nor the code may reveal which keys exist.
func TestSignature_UnknownKeyReadsLikeAWrongSecret(t *testing.T) {
	a := probedAPI(t)
	says := map[string]bool{}
	for _, id := range []string{theKey, "none", "gone"} {
		gone := appKey(1)
		gone.State = rental.KeyRevoked
		a.agencyKeys.byID["gone"] = gone
		r := a.asClient(http.MethodGet, probe, signedBy(func(s *signature) { s.key.ID, s.key.Secret = id, appKey(2).Secret })).
			wants(401, "agency_signature_invalid")
		says[r.body.Message] = true
	}
	same(t, len(says), 1, "messages %v, want one for all keys", says)
}

func TestSignature_IsValidForOneChange(t *testing.T) {
	a := probedAPI(t)
	again := signedBy(func(s *signature) { s.nonce = "abcdefghijklmnop" })
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		a.signatures.used = map[string]bool{}
		a.asClient(method, probe, again).wants(200, "")
		r := a.asClient(method, probe, again).wants(401, "agency_signature_replayed")
		if !strings.Contains(r.body.Message, "sign each attempt again") ||
			!strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Motorpool-Signature ") {
			t.Errorf("%s: %s %v, want the hint and the challenge", method, r.text, r.header)
		}
	}
	a.wantsEntries()
	// Another agency may use the same nonce.
	a.do(http.MethodPost, probe, clientOf(2, "anna"), again).wants(200, "")
	if u := a.signatures.uses[0]; u.Actor.Agency != 1 || u.Actor.Subject != "client-1" || u.At.Unix() != now.Unix() || u.Key != "ak_1" {
		t.Errorf("use %+v is not that of the request", u)
	}
}

func TestSignature_OverTheLimitIsNotStored(t *testing.T) {
	l := &limiter{}
	a := probedAPI(t, limitedBy(l, request.Rates{Client: 2, Card: 5}))
	for range 2 {
		a.asClient(http.MethodPost, probe).wants(200, "")
	}
	for range 20 {
		a.asClient(http.MethodPost, probe).wants(429, "rate_limited")
	}
	same(t, a.signatures.count(), 2, "signatures were stored")
}

func TestSignature_ReplayIsNotCountedAsACard(t *testing.T) {
	a, l := limitedClients(t, 10, 5)
	again := signedBy(func(s *signature) { s.nonce = "abcdefghijklmnop" })
	a.asClient(http.MethodPost, probeCard, again).wants(200, "")
	l.drain()
	a.asClient(http.MethodPost, probeCard, again).wants(401, "agency_signature_replayed").wantsQuota("10", "8", "6")
	same(t, strings.Join(l.drain(), " "), "client:1:client-1", "counted against")
}

func TestSignature_StoreMayRefuseItAsStaleOrOneTooMany(t *testing.T) {
	a := probedAPI(t)
	a.signatures.result = rental.NotFresh
	a.asClient(http.MethodPost, probe).wants(401, "agency_signature_stale")
	a.signatures.result = rental.TooManyUses
	a.asClient(http.MethodPost, probe).wants(429, "rate_limited").wantsRetryAfter("60")
	a.asClient(http.MethodGet, probe).wants(200, "")
}

func TestSignature_AgencyOfTokenAndKeyMustAgree(t *testing.T) {
	a := probedAPI(t)
	a.asClient(http.MethodPost, probe, signedBy(ofOtherApp)).wants(403, "agency_mismatch")
	a.wantsEntries(logged{Code: "agency_mismatch", Action: "probe.change", Agency: 1})
}

func TestSignature_IsCheckedAfterTokenAndRoleAndBeforeLimits(t *testing.T) {
	l := &limiter{}
	a := probedAPI(t, limitedBy(l, request.Rates{Client: 1}))
	a.do(http.MethodPost, probe, withoutSignature, withBody(strings.Repeat(" ", 64<<10+1))).wants(413, "body_too_large")
	a.do(http.MethodPost, probe, anonymous, withoutSignature).wants(401, "unauthenticated")
	// An administrator's token.
	a.do(http.MethodPost, probe, withoutSignature).wants(403, "forbidden")
	a.do(http.MethodPost, probe).wants(403, "forbidden")
	a.asClient(http.MethodPut, probe, withoutSignature).wants(405, "method_not_allowed")
	a.asClient(http.MethodPost, "/api/v1/client/nothing", withoutSignature).wants(404, "not_found")
	same(t, len(a.agencyKeys.asked), 0, "keys that were looked up")
	same(t, a.signatures.count(), 0, "signatures")
	a.asClient(http.MethodPost, probe).wants(200, "").wantsQuota("1", "0", "6")
	a.asClient(http.MethodPost, probe).wants(429, "rate_limited")
	a.asClient(http.MethodPost, probe, withoutSignature).wants(401, "agency_signature_missing").wantsQuota("", "", "")
	a.asClient(http.MethodPost, probe, signed, withBody("x")).wants(401, "agency_signature_invalid")
	a.asClient(http.MethodPost, probe, signedBy(ofOtherApp)).wants(403, "agency_mismatch").wantsQuota("", "", "")
	// An invalid Idempotency-Key is checked like other fields, after the signature.
	a.asClient(http.MethodPost, probe, keyed("two words"), withoutSignature).wants(401, "agency_signature_missing")
}

func TestSignature_WithoutTheStoreReadsPassAndChangesAreRefused(t *testing.T) {
	a := probedAPI(t, func(c *httpapi.Config) { c.Signatures = &signatures{err: gone{}} })
	a.asClient(http.MethodGet, probe).wants(200, "")
	a.asClient(http.MethodHead, probe).answers(200)
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		a.asClient(method, probe).wants(503, "service_unavailable").wantsRetryAfter("10")
	}
	a.asClient(http.MethodPost, probe, signed, withBody("x")).wants(401, "agency_signature_invalid")
	a.asClient(http.MethodGet, probe, signedAt(-time.Hour)).wants(401, "agency_signature_stale")
}

func TestSignature_WithoutKeysClientsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*httpapi.Config){
		"unavailable": func(c *httpapi.Config) { c.AgencyKeys = &agencyKeys{err: gone{}} },
		"frozen":      func(c *httpapi.Config) { c.AgencyKeys, c.ReadBudget = &agencyKeys{block: true}, 10*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			a := probedAPI(t, change)
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r := a.asClient(method, probe).wants(503, "service_unavailable").wantsRetryAfter("10")
				if strings.Contains(r.text, "secret-host") {
					t.Errorf("%s: %s", method, r.text)
				}
			}
			same(t, a.signatures.count(), 0, "a nonce was used")
		})
	}
}

func TestSignature_DisconnectedCallerHasUsedIt(t *testing.T) {
	a := probedAPI(t)
	again := signedBy(func(s *signature) { s.nonce = "abcdefghijklmnop" })
	a.asClient(http.MethodPost, probe, again, disconnected).wants(200, "")
	a.asClient(http.MethodPost, probe, again).wants(401, "agency_signature_replayed")
}

// The signature covers the request line as the client wrote it.
func TestSignature_CoversPathAndQueryAsSent(t *testing.T) {
	server := httptest.NewServer(probedAPI(t).handler)
	defer server.Close()
	token := clientToken()
	for _, line := range []struct{ target, path, query string }{
		{"/api/v1/client/probe/7?a=%2F&b=+&&c", "/api/v1/client/probe/7", "a=%2F&b=+&&c"},
		{"/api/v1/client/probe/%E4%20x?", "/api/v1/client/probe/%E4%20x", ""},
		{"/api/v1/client/probe/7?a?b=/", "/api/v1/client/probe/7", "a?b=/"},
		// Go would encode this path differently.
		{"/api/v1/client/probe/a|b%2fc?d=|", "/api/v1/client/probe/a|b%2fc", "d=|"},
		{"http://example.com/api/v1/client/probe/7?a=b", "/api/v1/client/probe/7", "a=b"},
	} {
		signed := rental.SignedRequest{Method: "GET", Path: line.path, Query: line.query, Token: token}
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		_ = must(fmt.Fprintf(
			connection,
			"GET %s HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nAuthorization: Bearer %s\r\nX-Agency-Signature:  %s \r\n\r\n",
			line.target, token, signed.Sign(theKey, appKey(1).Secret, now, freshNonce()),
		))
		answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
		require.NoError(t, err)
		same(t, answer.StatusCode, 200, "%s: %s", line.target, answer.Status)
		_ = answer.Body.Close()
		_ = connection.Close()
	}
}
