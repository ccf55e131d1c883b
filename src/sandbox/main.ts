/** `npm run gateway` starts the sandbox gateway alone. */
import { pathToFileURL } from "node:url";
import { pino } from "pino";
import { describeAccounts } from "./models.ts";
import { type Sandbox, startSandbox } from "./server.ts";

const HOST = "127.0.0.1";
const DEFAULT_PORT = 8787;
const DEFAULT_SERVICE_PORT = "3000";

const LEVELS = [...Object.keys(pino.levels.values), "silent"];

type Environment = Readonly<Record<string, string | undefined>>;

/** Starts the sandbox and prints its address, its keys and an example. Rejects with a sentence for the terminal. */
export async function runGateway(env: Environment, print: (line: string) => void): Promise<Sandbox> {
  const log = pino({ level: readLevel(env["LOG_LEVEL"]) });
  // Allow references from the service on this machine, although it has no public address.
  const service = `http://${HOST}:${env["PORT"] || DEFAULT_SERVICE_PORT}`;
  const port = readPort(env["GATEWAY_PORT"]);
  const sandbox = await startSandbox({ host: HOST, port, log, trustedFileOrigins: [service] });
  print(`The sandbox gateway listens on ${sandbox.url}`);
  print("Keys (public, they open nothing else) and the models they may use:");
  for (const line of describeAccounts()) print(`  ${line}`);
  print("Try:");
  print(
    `  curl ${sandbox.url}/v1/chat/completions -H 'Authorization: Bearer sk-sandbox-all' -H 'Content-Type: application/json' \\`,
  );
  print(
    `    -d '{"model":"sandbox-chat","stream":true,"messages":[{"role":"user","content":"Hello! What can you do?"}]}'`,
  );
  return sandbox;
}

function readLevel(text: string | undefined): string {
  const level = text || "info";
  if (LEVELS.includes(level)) return level;
  throw new Error(`LOG_LEVEL must be one of ${LEVELS.join(", ")}, not ${JSON.stringify(level)}.`);
}

function readPort(text: string | undefined): number {
  if (text === undefined || text === "") return DEFAULT_PORT;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new Error(`GATEWAY_PORT must be a port between 0 and 65535, not ${JSON.stringify(text)}.`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(): Promise<void> {
  try {
    const sandbox = await runGateway(process.env, print);
    const stop = () => void sandbox.close();
    process.once("SIGTERM", stop);
    process.once("SIGINT", stop);
  } catch (error) {
    process.stderr.write(`${describeStartError(error)}\n`);
    process.exitCode = 1;
  }
}

function describeStartError(error: unknown): string {
  if (!(error instanceof Error)) return "The sandbox gateway could not start.";
  if (!("code" in error) || error.code !== "EADDRINUSE") return `The sandbox gateway could not start: ${error.message}`;
  return "The sandbox gateway could not start: its port is in use. Set GATEWAY_PORT to another one.";
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
