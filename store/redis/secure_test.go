package redis

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Sentinels and clusters name servers that the URL does not, so none is checked by the URL's name.
func TestClient_EachKindOfRedisIsSecured(t *testing.T) {
	roots := x509.NewCertPool()
	for url, secured := range map[string]bool{
		"redis://a:6379":                 false,
		"rediss://a:6379":                true,
		"redis://a:6379?addr=b:6379":     false,
		"rediss://a:6379?addr=b:6379":    true,
		"redis://a:26379?master_name=m":  false,
		"rediss://a:26379?master_name=m": true,
	} {
		client, err := Config{URL: url, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}.client()
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		var used *tls.Config
		switch client := client.(type) {
		case *redis.Client: // of a Sentinel's, too
			used = client.Options().TLSConfig
		case *redis.ClusterClient:
			used = client.Options().TLSConfig
		}
		switch {
		case (used != nil) != secured:
			t.Errorf("%s: secured %v", url, used != nil)
		case secured && (used.RootCAs != roots || used.ServerName != "" || used.InsecureSkipVerify):
			t.Errorf("%s: %+v", url, used)
		}
		_ = client.Close()
	}
}
