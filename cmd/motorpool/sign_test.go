package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
)

const (
	signSecret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	signNonce  = "3q2-7wAAAAAAAAAAAAAAAA"
	cardBody   = `{"payment_method_id":"pm_card_visa","set_default":true}`
)

// setSigningKey sets the key of the vectors in the environment.
func setSigningKey(t *testing.T) {
	t.Helper()
	t.Setenv("AGENCY_KEY_ID", "ak_1")
	t.Setenv("AGENCY_SECRET", signSecret)
	t.Setenv("CLIENT_TOKEN", "token-abc")
}

func TestSign_SignsTheVectors(t *testing.T) {
	setSigningKey(t)
	body := filepath.Join(t.TempDir(), "body.json")
	require.NoError(t, os.WriteFile(body, []byte(cardBody), 0o600))
	fromStdin(t, cardBody)
	const one, card, list = "c5e4560f7718907c46755ca9ea33e1289adf18d0c944857f4da53c533c9513d1",
		"085a2e663ed76a46975a3a9ea3808f51b8c96343a398abb2809728f76e309a1d",
		"3ccc94f972970a7175173b84334353358ae200b7c41d8d928a9978396016db60"
	for _, c := range []struct {
		args []string
		v1   string
	}{
		{[]string{"GET", "/api/v1/client/bookings/42"}, one},
		{[]string{"get", "https://api.example.com:8080/api/v1/client/bookings/42#top"}, one},
		{[]string{"--body", body, "POST", "/api/v1/client/payment-methods"}, card},
		{[]string{"--body", "-", "POST", "/api/v1/client/payment-methods"}, card},
		{[]string{"--data", cardBody, "POST", "http://127.0.0.1:8080/api/v1/client/payment-methods"}, card},
		{[]string{"GET", "/api/v1/client/bookings?status=active&limit=20"}, list},
		{[]string{"GET", "http://h/api/v1/client/bookings?status=active&limit=20"}, list},
	} {
		tool(t, append([]string{"sign", "--time", "1763640000", "--nonce", signNonce}, c.args...)...).
			printsOnly("X-Agency-Signature: k=ak_1,t=1763640000,n=" + signNonce + ",v1=" + c.v1)
	}
}

func TestSign_HasTheCurrentTimeAndAUniqueNonce(t *testing.T) {
	setSigningKey(t)
	nonces := map[string]bool{}
	for range 3 {
		printed, err := output(t, "sign", "GET", "/a")
		require.NoError(t, err)
		s, err := rental.ParseSignature(strings.TrimSpace(strings.TrimPrefix(printed, "X-Agency-Signature: ")))
		if err != nil || !s.Fresh(time.Now()) {
			t.Errorf("%q is not a fresh signature: %v", printed, err)
		}
		nonces[s.Nonce] = true
	}
	if len(nonces) != 3 {
		t.Errorf("the nonces are %v, want three different ones", nonces)
	}
}

func TestSign_ExplainPrintsTheSignedText(t *testing.T) {
	setSigningKey(t)
	_, said, err := runTool(t, "sign", "--explain", "--time", "1763640000", "--nonce", signNonce, "GET", "/a?b=c")
	if lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n"); err != nil || len(lines) != 8 || lines[0] != "v1" ||
		lines[4] != "/a" || lines[5] != "b=c" {
		t.Errorf("the explanation is %q, %v", said, err)
	}
}

// The operator's commands use the token of an administrator; a signature with it would be refused.
func TestSign_DoesNotUseTheOperatorsToken(t *testing.T) {
	setSigningKey(t)
	t.Setenv("CLIENT_TOKEN", "")
	_ = os.Unsetenv("CLIENT_TOKEN")
	t.Setenv("MOTORPOOL_TOKEN", "admin")
	tool(t, "sign", "GET", "/a").fails("--token")
}

func TestSign_RefusesWhatTheServiceWouldRefuse(t *testing.T) {
	for flag, args := range map[string][]string{
		"--secret":               {"--secret", "0102", "GET", "/a"},
		"--secret: want 64":      {"--secret", strings.Repeat("g", 64), "GET", "/a"},
		"--token":                {"--token", "Bearer abc", "GET", "/a"},
		"--key-id":               {"--key-id", "ak.1", "GET", "/a"},
		"--nonce":                {"--nonce", "short", "GET", "/a"},
		"--body":                 {"--body", "/does/not/exist", "GET", "/a"},
		"neither a path":         {"GET", "api/v1"},
		"percent-encoded":        {"GET", "/a?b=ä"},
		"be percent-encoded":     {"GET", "/a b"},
		"can't be used together": {"--body", "-", "--data", "x", "GET", "/a"},
	} {
		setSigningKey(t)
		printed, err := output(t, append([]string{"sign"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), flag) || strings.Contains(printed, "v1=") || strings.Contains(err.Error(), "gggg") {
			t.Errorf("sign %v: printed %q, error %v, want %q", args, printed, err, flag)
		}
	}
}

func TestSign_ErrorNamesTheMissingVariables(t *testing.T) {
	setSigningKey(t)
	t.Setenv("CLIENT_TOKEN", "")
	tool(t, "sign", "GET", "/").fails("set CLIENT_TOKEN (--token);", "source .dev/env")
	t.Setenv("AGENCY_KEY_ID", "")
	t.Setenv("AGENCY_SECRET", "")
	tool(t, "sign", "GET", "/").fails("set AGENCY_KEY_ID (--key-id), AGENCY_SECRET (--secret), CLIENT_TOKEN (--token);")
}
