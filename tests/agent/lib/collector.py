#!/usr/bin/env python3
"""A server of profefe's interface: prints each request, keeps each profile in the current folder.

collector.py [STATUS]: its first line is the port."""
import http.server
import sys
import urllib.parse

status = int(sys.argv[1]) if len(sys.argv) > 1 else 200
count = 0


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global count
        body = self.rfile.read(int(self.headers["Content-Length"]))
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        count += 1
        with open(f"pushed.{count}.{query['type'][0]}.pb.gz", "wb") as f:
            f.write(body)
        print(url.path, *(f"{k}={v[0]}" for k, v in sorted(query.items())), flush=True)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b'{"code":%d}\n' % status)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
