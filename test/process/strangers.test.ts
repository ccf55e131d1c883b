import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeDataDir, type RunningService, startService } from "../../lab/support/service.ts";

const MiB = 1024 * 1024;
const CONNECTIONS = 48;
const BODY_BYTES = 16 * MiB;

async function start(env: Record<string, string>): Promise<RunningService> {
  const data = await makeDataDir();
  const service = await startService(data.path, env);
  onTestFinished(async () => {
    await service.end("SIGTERM");
    await data.remove();
  });
  return service;
}

/** The process's peak memory so far. */
function peakBytes(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

function open({ url }: RunningService, head: string): Socket {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write(`${head}\r\nHost: 127.0.0.1\r\n\r\n`);
  return socket;
}

/** Sends the start of a body. Waits for the response, or for the end of the connection. */
async function flood(service: RunningService, path: string): Promise<string> {
  const socket = open(service, `POST ${path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nOrigin: ${service.url}`);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  // `once` from Node's events does not work here, because it fails if the server closes the connection early.
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.write(`${(2 * BODY_BYTES).toString(16)}\r\n`);
  socket.write(Buffer.alloc(BODY_BYTES, "x"));
  await closed;
  return Buffer.concat(chunks).toString();
}

describe("strangers who send requests to the service", () => {
  test.runIf(process.platform === "linux")(
    "endless request bodies of strangers fill no memory, on any path",
    async () => {
      const service = await start({ LOCAL_PASSWORD: "correct horse", LOCAL_CHAT: "on" });
      await fetch(`${service.url}/healthz`);
      const before = peakBytes(service.pid);
      const paths = ["/nothing", "/local/files", "/local/messages", "/relay/v1/x", "/healthz", "/slack/events"];
      const floods = Array.from({ length: CONNECTIONS }, (_, index) =>
        flood(service, paths[index % paths.length] ?? ""),
      );
      const answers = await Promise.all(floods);
      // The requests announced 768 MiB.
      expect((peakBytes(service.pid) - before) / MiB).toBeLessThan(256);
      expect(answers.filter((answer) => / 200 /.test(answer))).toEqual([]);
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    },
  );

  test("a stranger who disconnects in the middle of a request causes no error in the log", async () => {
    const service = await start({ LOG_LEVEL: "debug" });
    const length = `Content-Type: application/json\r\nContent-Length: 100\r\nOrigin: http://127.0.0.1`;
    for (const path of ["/local/messages", "/local/files", "/nothing", "/slack/events"]) {
      const socket = open(service, `POST ${path} HTTP/1.1\r\nExpect: 100-continue\r\n${length}`);
      await once(socket, "data");
      socket.write('{"nonce":', () => socket.destroy());
      await once(socket, "close");
    }
    const stream = open(service, "GET /local/events HTTP/1.1");
    await once(stream, "data");
    stream.destroy();
    // After a later request and a regular shutdown, every line is in the log.
    await fetch(`${service.url}/healthz`);
    await service.end("SIGTERM");
    expect(service.lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line) || !line.startsWith("{"))).toEqual(
      [],
    );
  });
});
