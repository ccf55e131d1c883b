import { z } from "zod";

export const access = z.unknown();
