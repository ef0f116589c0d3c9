package world

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func TestSearchLogs_FindsEachSecretThatIsPlanted(t *testing.T) {
	w, err := New(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	token, err := w.Token(telematics.Actor{Subject: "admin-7", Role: telematics.Admin})
	require.NoError(t, err)
	claims, signature, _ := strings.Cut(strings.SplitN(token, ".", 2)[1], ".")
	later, err := signing.NewKey()
	require.NoError(t, err)
	chain, err := w.Signing.Add(later, w.Signing[0].Created)
	require.NoError(t, err)
	jwks, err := chain.Encode()
	require.NoError(t, err)
	write(t, w.Path(folder.SigningFile), string(jwks))
	w.InUse.AddURL("password of postgres", "postgres://u:hush-database@127.0.0.1:5432/db")
	w.InUse.AddBytes("secret of agency key a", []byte("\xff\xfe123456789"))
	planted := map[string]string{
		"claims": claims, "signature": signature, "units": w.UnitSecret, "service": w.ServicePassword,
		"processor": w.PaymentsKey, "notices": w.WebhookSecret, "agencies": w.AgencySecrets,
		"postgres":      "hush-database",
		"key":           base64.RawURLEncoding.EncodeToString(w.Signing.Active().Private.Seed()),
		"later key":     hex.EncodeToString(later.Private.Seed()),
		"key of tokens": base64.RawURLEncoding.EncodeToString(w.Tokens.Private.Seed()),
		"agency's app":  base64.RawStdEncoding.EncodeToString([]byte("\xff\xfe123456789")),
	}
	write(t, w.Path("mosquitto.log"), "one line\n")
	for name, secret := range planted {
		write(t, w.Path("instance-0.log"), "request served\nserving http=127.0.0.1:1\nlevel=INFO msg=\"x\" url=http://u:"+secret+"@h/\n")
		found, err := w.SearchLogs()
		if err != nil || len(found.Leaks) != 1 || found.Leaks[0].File != "instance-0.log" || found.Leaks[0].Line != 3 || found.Lines != 4 {
			t.Errorf("%s: found %+v, %v; want one leak in line 3", name, found, err)
			continue
		}
		if text := fmt.Sprint(found.Leaks[0]); strings.Contains(text, secret) || !strings.HasPrefix(text, "instance-0.log:3 has the ") {
			t.Errorf("%s: reported as %s, want the place without the secret", name, text)
		}
	}
	write(t, w.Path("instance-0.log"), "request served\n")
	if found, err := w.SearchLogs(); err != nil || len(found.Leaks) != 0 {
		t.Errorf("without a secret in the logs: %+v, %v", found, err)
	}
}

func TestSearch_FailsWithoutSecretsOrLogs(t *testing.T) {
	if _, err := new(InUse).Search("x.log", []byte("text")); err == nil {
		t.Error("Search without a secret returned no error")
	}
	var short InUse
	short.Add("password of redis", "secret7")
	short.Add("another", "long enough")
	if _, err := short.Search("x.log", []byte("text")); err == nil || !strings.Contains(err.Error(), "password of redis") ||
		strings.Contains(err.Error(), "secret7") {
		t.Errorf("with a short secret: %v", err)
	}
	w, err := New(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	if _, err := w.SearchLogs(); err == nil {
		t.Error("SearchLogs without a log returned no error")
	}
}
