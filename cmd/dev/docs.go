package main

import (
	_ "embed"
	"encoding/hex"
	"fmt"

	"motorpool/rental"
)

//go:embed docs.js
var docsInterceptor string

// docsScript lets the page /docs of this world sign clients' calls with the key of the demo's app.
func docsScript(key rental.AgencyKey) string {
	return fmt.Sprintf("const AGENCY_KEY_ID = %q, AGENCY_SECRET = %q;\n%s", key.ID, hex.EncodeToString(key.Secret), docsInterceptor)
}
