// The child process that parses the policy file, see read-apart.ts.
import { serveJobs } from "../concurrency/serve-jobs.ts";
import { type PolicySettings, readPolicyFile } from "../config/policy/policy-file.ts";
import { readBoundedText } from "../config/read-text.ts";
import type { PolicyJob } from "./read-apart.ts";

serveJobs(async ({ path }: PolicyJob): Promise<PolicySettings> => readPolicyFile(path, readBoundedText));
