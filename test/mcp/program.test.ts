import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openProgram } from "../../src/mcp/program.ts";

const PROGRAM = join(import.meta.dirname, "../../src/mcp/program.ts");

/**
 * A program that ignores the end of its input and all signals except SIGKILL, and a connection that stays open while it
 * runs.
 */
async function startStubborn() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const connected = once(server, "connection").then(([socket]) => (socket as Socket).resume());
  onTestFinished(async () => {
    server.close();
    // Stops the program if the test did not.
    (await connected).destroy();
  });
  const code = `
    for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.on(signal, () => {});
    require("node:net").connect(${port}, "127.0.0.1").on("close", () => process.exit());`;
  return { code, connected };
}

function toProgram(code: string) {
  return { type: "stdio", command: process.execPath, args: ["-e", code], env: {}, cwd: undefined } as const;
}

test("the service kills a stubborn program of a tool server when its parent process exits", async () => {
  const { code, connected } = await startStubborn();
  const options = `{ program: ${JSON.stringify(toProgram(code))}, env: {}, onWords() {} }`;
  const owner = spawn(process.execPath, [
    "--input-type=module",
    "-e",
    `import { openProgram } from ${JSON.stringify(PROGRAM)};
    await openProgram(${options}).start();
    process.stdin.once("data", () => process.exit(3));`,
  ]);
  const ended = once(await connected, "close");
  owner.stdin.write("exit\n");
  expect(await once(owner, "exit")).toEqual([3, null]);
  await ended;
});

test("the service kills a process that a launcher left behind when the launcher exits", async () => {
  const { code, connected } = await startStubborn();
  const launcher = `
    require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(code)}], { stdio: "ignore" }).unref();
    process.stdin.once("data", () => process.exit());`;
  const transport = openProgram({ program: toProgram(launcher), env: {}, onWords: () => {} });
  onTestFinished(transport.close);
  await transport.start();
  const ended = once(await connected, "close");
  await transport.send({ jsonrpc: "2.0", method: "notifications/initialized" });
  await ended;
});

test("a message to a program that is exiting reports the exit, and no broken pipe", async () => {
  const closed = Promise.withResolvers<void>();
  const program = toProgram(`
    require("node:fs").closeSync(0);
    console.error("no API key");
    setTimeout(() => process.exit(4), 100);`);
  const transport = openProgram({ program, env: {}, onWords: () => closed.resolve() });
  const errors: Error[] = [];
  const onerror = (error: Error) => void errors.push(error);
  const ended = new Promise<void>((resolve) => Object.assign(transport, { onclose: resolve, onerror }));
  await transport.start();
  await closed.promise;
  // More than the pipe holds, so the transport also waits until it drains.
  const big = { jsonrpc: "2.0", method: "notifications/x", params: { text: "x".repeat(1_000_000) } } as const;
  await transport.send(big);
  await ended;
  expect(transport.end?.message).toMatch(/^its program exited with code 4/);
  expect(errors).toEqual([]);
});
