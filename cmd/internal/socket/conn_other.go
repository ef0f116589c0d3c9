//go:build !linux || !(amd64 || arm64)

package socket

import "net"

// Direct returns the connection as it is.
func Direct(c net.Conn) net.Conn { return c }
