import { z } from "zod";
import type { Source } from "../text/sources.ts";

export const source: z.ZodType<Source> = z.object({
  url: z.string(),
  title: z.string(),
  marks: z.array(z.int()).exactOptional(),
});
