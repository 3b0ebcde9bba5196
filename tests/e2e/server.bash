# Sourced by tests: starts server.py, which ends with the test; check and the servers' addresses.
: "${KILN:?}" "${DATA:?}"
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) n=0
export HOME=$tmp/home PPROF_TMPDIR=$tmp/copies
unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY
cd "$tmp" || exit 1

# A CA of our own, and a certificate of it for server and client.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem \
	-days 2 -subj /CN=test-ca 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out req.pem \
	-subj /CN=localhost 2>/dev/null
openssl x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 \
	-extfile <(echo subjectAltName=DNS:localhost,IP:127.0.0.1) 2>/dev/null

# The server ends when its stdin is closed, that is with this script.
exec 9> >(exec python3 "$here/server.py" "$DATA" "$tmp/ports" cert.pem key.pem ca.pem)
trap 'exec 9>&-; rm -rf "$tmp"' EXIT
for ((i = 0; i < 100; i++)); do
	[ -e ports ] && break
	sleep 0.1
done
read -r port tls_port mutual_port <ports
at=127.0.0.1:$port url=http://127.0.0.1:$port tls=https://localhost:$tls_port mutual=https://localhost:$mutual_port

# check NAME COMMAND...: the command must succeed.
check() {
	local name=$1
	n=$((n + 1))
	shift
	if "$@" >log 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' log err 2>/dev/null | head -40
	fi
}
