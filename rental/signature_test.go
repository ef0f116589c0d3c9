package rental_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
)

// The vectors are the examples of docs/signing/vectors.json, with which an app developer begins.
const (
	vectorNonce = "3q2-7wAAAAAAAAAAAAAAAA"
	vectorToken = "token-abc"
)

var vectorTime = time.Unix(1763640000, 0)

func vectorSecret() []byte {
	secret := make([]byte, rental.SecretSize)
	for i := range secret {
		secret[i] = byte(i)
	}
	return secret
}

func TestSign_GivesTheDocumentedVectors(t *testing.T) {
	for _, c := range []struct{ method, target, body, v1 string }{
		{"GET", "/api/v1/client/bookings/42", "", "c5e4560f7718907c46755ca9ea33e1289adf18d0c944857f4da53c533c9513d1"},
		{
			"POST", "/api/v1/client/payment-methods", `{"payment_method_id":"pm_card_visa","set_default":true}`,
			"085a2e663ed76a46975a3a9ea3808f51b8c96343a398abb2809728f76e309a1d",
		},
		{"GET", "/api/v1/client/bookings?status=active&limit=20", "", "3ccc94f972970a7175173b84334353358ae200b7c41d8d928a9978396016db60"},
	} {
		path, query := rental.SplitTarget(c.target)
		r := rental.SignedRequest{Method: c.method, Path: path, Query: query, Body: []byte(c.body), Token: vectorToken}
		s := r.Sign("ak_1", vectorSecret(), vectorTime, vectorNonce)
		want := "k=ak_1,t=1763640000,n=" + vectorNonce + ",v1=" + c.v1
		if s.String() != want {
			t.Errorf("%s %s: signature %s, want %s", c.method, c.target, s, want)
		}
		read, err := rental.ParseSignature(want)
		if err != nil || !read.Verify(vectorSecret(), r) || read.String() != want {
			t.Errorf("%s %s: the documented signature is read as %+v (%v), or does not verify", c.method, c.target, read, err)
		}
	}
}

func TestVerify_OnlyTheSignedRequestWithItsSecret(t *testing.T) {
	r := rental.SignedRequest{Method: "POST", Path: "/a", Query: "b=c", Body: []byte("{}"), Token: "t"}
	s := r.Sign("k", vectorSecret(), vectorTime, vectorNonce)
	if !s.Verify(vectorSecret(), r) {
		t.Fatal("the signature of the request itself does not verify")
	}
	for name, change := range map[string]func(*rental.SignedRequest, *rental.Signature){
		"method":              func(r *rental.SignedRequest, _ *rental.Signature) { r.Method = "GET" },
		"path":                func(r *rental.SignedRequest, _ *rental.Signature) { r.Path = "/a/" },
		"query":               func(r *rental.SignedRequest, _ *rental.Signature) { r.Query = "" },
		"path with the query": func(r *rental.SignedRequest, _ *rental.Signature) { r.Path, r.Query = "/a\nb=c", "" },
		"body":                func(r *rental.SignedRequest, _ *rental.Signature) { r.Body = nil },
		"token":               func(r *rental.SignedRequest, _ *rental.Signature) { r.Token = "u" },
		"time":                func(_ *rental.SignedRequest, s *rental.Signature) { s.At = s.At.Add(time.Second) },
		"nonce":               func(_ *rental.SignedRequest, s *rental.Signature) { s.Nonce = strings.ToLower(s.Nonce) },
		"MAC":                 func(_ *rental.SignedRequest, s *rental.Signature) { s.MACs = [][]byte{make([]byte, 32)} },
		"no MAC":              func(_ *rental.SignedRequest, s *rental.Signature) { s.MACs = nil },
		"truncated MAC":       func(_ *rental.SignedRequest, s *rental.Signature) { s.MACs = [][]byte{s.MACs[0][:31]} },
		"two wrong MACs":      func(_ *rental.SignedRequest, s *rental.Signature) { s.MACs = [][]byte{make([]byte, 32), {}} },
	} {
		changed, signature := r, s
		change(&changed, &signature)
		if signature.Verify(vectorSecret(), changed) {
			t.Errorf("%s changed: the signature still verifies", name)
		}
	}
	if other := append([]byte{1}, vectorSecret()[1:]...); s.Verify(other, r) {
		t.Error("the signature verifies with another secret")
	}
	// While a secret is replaced, an app may sign with both.
	for _, macs := range [][][]byte{{make([]byte, 32), s.MACs[0]}, {s.MACs[0], make([]byte, 32)}} {
		both := s
		both.MACs = macs
		if !both.Verify(vectorSecret(), r) {
			t.Errorf("MACs %x: the signature does not verify, want one valid MAC to suffice", macs)
		}
	}
}

func TestParseSignature_AcceptsOneFormOnly(t *testing.T) {
	v1 := "v1=" + strings.Repeat("0a", 32)
	good := "k=ak_1,t=1763640000,n=" + vectorNonce + "," + v1
	for _, header := range []string{good, good + "," +
		v1, strings.Replace(good, vectorNonce, strings.Repeat("_", 64), 1), strings.Replace(good, "ak_1", strings.Repeat("-", 64), 1)} {
		if s, err := rental.ParseSignature(header); err != nil || s.String() != header {
			t.Errorf("%s: read as %s, %v", header, s, err)
		}
	}
	for name, header := range map[string]string{
		"empty":                         "",
		"no v1":                         "k=ak_1,t=1763640000,n=" + vectorNonce,
		"three v1":                      good + "," + v1 + "," + v1,
		"unknown part":                  good + ",v2=" + strings.Repeat("0a", 32),
		"wrong order":                   "t=1763640000,k=ak_1,n=" + vectorNonce + "," + v1,
		"repeated part":                 "k=ak_1," + good,
		"space after a comma":           strings.Replace(good, ",t", ", t", 1),
		"space in the key":              strings.Replace(good, "ak_1", "ak 1", 1),
		"trailing comma":                good + ",",
		"upper-case names":              strings.Replace(good, "k=", "K=", 1),
		"upper-case hex":                strings.ToUpper(good[strings.Index(good, "v1="):]),
		"one upper-case digit":          strings.Replace(good, "0a", "0A", 1),
		"short hex":                     good[:len(good)-2],
		"odd hex":                       good[:len(good)-1],
		"long hex":                      good + "00",
		"no hex":                        strings.Replace(good, "0a", "0g", 1),
		"no key":                        strings.Replace(good, "ak_1", "", 1),
		"key too long":                  strings.Replace(good, "ak_1", strings.Repeat("k", 65), 1),
		"dot in the key":                strings.Replace(good, "ak_1", "ak.1", 1),
		"no time":                       strings.Replace(good, "1763640000", "", 1),
		"time in milliseconds":          strings.Replace(good, "1763640000", "1763640000000", 1),
		"fraction in the time":          strings.Replace(good, "1763640000", "1763640000.5", 1),
		"plus sign in the time":         strings.Replace(good, "1763640000", "+1763640000", 1),
		"time before 1970":              strings.Replace(good, "1763640000", "-1", 1),
		"time -0":                       strings.Replace(good, "1763640000", "-0", 1),
		"leading zero in the time":      strings.Replace(good, "1763640000", "01763640000", 1),
		"nonce too short":               strings.Replace(good, vectorNonce, strings.Repeat("n", 15), 1),
		"nonce too long":                strings.Replace(good, vectorNonce, strings.Repeat("n", 65), 1),
		"padded nonce":                  strings.Replace(good, vectorNonce, vectorNonce+"==", 1),
		"nonce in standard base64":      strings.Replace(good, vectorNonce, "3q2+7w/AAAAAAAAAAAAAAA", 1),
		"non-ASCII letter in the nonce": strings.Replace(good, vectorNonce, "3q2-7wAAAAAAAAAAAAAAÄ", 1),
		"10 kB":                         good + strings.Repeat(","+v1, 150),
	} {
		if s, err := rental.ParseSignature(header); err == nil {
			t.Errorf("%s: %q is read as %+v, want an error", name, header, s)
		} else if len(err.Error()) > 200 || strings.Contains(err.Error(), "0a0a") {
			t.Errorf("%s: the error is long or quotes the MAC: %v", name, err)
		}
	}
}

func FuzzParseSignature_OneFormOnly(f *testing.F) {
	good := "k=ak_1,t=1763640000,n=" + vectorNonce + ",v1=" + strings.Repeat("0a", 32)
	f.Add(good)
	f.Add(good + ",v1=" + strings.Repeat("ff", 32))
	f.Add("k=,t=0,n=,v1=")
	f.Fuzz(func(t *testing.T, header string) {
		s, err := rental.ParseSignature(header)
		if err != nil {
			return
		}
		if s.String() != header || len(header) > 512 || len(s.MACs) == 0 || s.Key == "" {
			t.Errorf("%q is read as %+v, which is written %q", header, s, s)
		}
	})
}

func TestFresh_WithinFiveMinutesBeforeOrAfter(t *testing.T) {
	s := rental.Signature{At: vectorTime}
	for skew, want := range map[time.Duration]bool{
		0: true, 300 * time.Second: true, -300 * time.Second: true,
		300*time.Second + 999*time.Millisecond: true, 301 * time.Second: false, -300*time.Second - time.Millisecond: false,
		24 * time.Hour: false,
	} {
		assert.Equal(t, s.Fresh(vectorTime.Add(skew)), want, "clock %v ahead of the signature: fresh", skew)
	}
	if far, err := rental.ParseSignature("k=k,t=999999999999,n=" + vectorNonce + ",v1=" + strings.Repeat("0a", 32)); err != nil ||
		far.Fresh(vectorTime) {
		t.Errorf("time in the far future: %+v, %v; want it read and not fresh", far, err)
	}
}

func TestAgencyKeyValid_WhileActiveAndUntilItRetires(t *testing.T) {
	until := vectorTime
	for name, c := range map[string]struct {
		key  rental.AgencyKey
		at   time.Time
		want bool
	}{
		"active":                    {rental.AgencyKey{State: rental.KeyActive}, until, true},
		"retiring, before its date": {rental.AgencyKey{State: rental.KeyRetiring, Retires: until}, until.Add(-time.Nanosecond), true},
		"retiring, at its date":     {rental.AgencyKey{State: rental.KeyRetiring, Retires: until}, until, false},
		"revoked":                   {rental.AgencyKey{State: rental.KeyRevoked}, until, false},
		"revoked before it retired": {rental.AgencyKey{State: rental.KeyRevoked, Retires: until.Add(time.Hour)}, until, false},
		"unknown state":             {rental.AgencyKey{}, until, false},
	} {
		assert.Equal(t, c.key.Valid(c.at), c.want, "%s: valid", name)
	}
}

func TestSignature_AKeyDoesNotPrintItsSecret(t *testing.T) {
	key := rental.AgencyKey{ID: "ak_1", Agency: 7, State: rental.KeyActive, Secret: []byte("hush hush")}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("key", "key", key)
	for _, text := range []string{fmt.Sprint(key), fmt.Sprintf("%+v", key), fmt.Sprintf("%#v", key), log.String()} {
		if !strings.Contains(text, "ak_1") || strings.Contains(text, "hush") || strings.Contains(text, "aHVzaCBodXNo") ||
			strings.Contains(text, "104 117") ||
			strings.Contains(text, "0x68, 0x75") {
			t.Errorf("printed as %s, want the id without the secret", text)
		}
	}
}

func TestSplitTarget_DoesNotDecode(t *testing.T) {
	for target, want := range map[string][2]string{
		"/a":                          {"/a", ""},
		"/a?":                         {"/a", ""},
		"/a?b=c":                      {"/a", "b=c"},
		"/a%2Fb/%C3%A4?b=%20&c=+?d=/": {"/a%2Fb/%C3%A4", "b=%20&c=+?d=/"},
		"http://h:8080/a/b?c=d":       {"/a/b", "c=d"},
		"http://h":                    {"/", ""},
		"http://h?c=d":                {"/", "c=d"},
		"/a?b=http://h/c":             {"/a", "b=http://h/c"},
		"//h/a":                       {"//h/a", ""},
		"*":                           {"*", ""},
		"":                            {"", ""},
	} {
		if path, query := rental.SplitTarget(target); path != want[0] || query != want[1] {
			t.Errorf("%q: path %q and query %q, want %q", target, path, query, want)
		}
	}
}
